// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

#include "csrc/cpu/causal_attention_kernel.h"
#include "csrc/ops/causal_attention_checks.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/row_arguments.h"

namespace at::native {
DEFINE_DISPATCH(satformer_causal_attention_stub);
DEFINE_DISPATCH(satformer_causal_attention_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

std::tuple<at::Tensor, at::Tensor> causal_attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  auto [out, logsumexp] = outputs_of_causal_attention(q, k, v);
  if (q.numel() == 0) return {out, logsumexp};
  const CausalAttentionTensors tensors{contiguous_rows(q), contiguous_rows(k), contiguous_rows(v), out, logsumexp};
  at::native::satformer_causal_attention_stub(at::kCPU, tensors);
  return {out, logsumexp};
}

// The sum over the query heads that read a head. Each of them has a gradient of its own before, so that heads may be
// worked on at once and yet be added in one order.
void add_up_groups(at::Tensor& sum, const at::Tensor& by_query_head) {
  if (sum.is_same(by_query_head)) return;
  at::sum_out(sum, by_query_head.unflatten(2, {sum.size(2), -1}), {3});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> causal_attention_backward_cpu(const at::Tensor& grad,
                                                                             const at::Tensor& q, const at::Tensor& k,
                                                                             const at::Tensor& v, const at::Tensor& out,
                                                                             const at::Tensor& logsumexp) {
  auto [grad_q, grad_k, grad_v] = outputs_of_causal_attention_backward(grad, q, k, v, out, logsumexp);
  if (q.numel() == 0) return {grad_q, grad_k.zero_(), grad_v.zero_()};
  const bool grouped = q.size(2) != k.size(2);
  const at::Tensor each_k = grouped ? at::empty_like(grad_q) : grad_k,
                   each_v = grouped ? at::empty_like(grad_q) : grad_v;
  const CausalAttentionTensors tensors{contiguous_rows(q), contiguous_rows(k), contiguous_rows(v), contiguous_rows(out),
                                       logsumexp.contiguous()};
  at::native::satformer_causal_attention_backward_stub(at::kCPU, contiguous_rows(grad), tensors, grad_q, each_k,
                                                       each_v);
  add_up_groups(grad_k, each_k);
  add_up_groups(grad_v, each_v);
  return {grad_q, grad_k, grad_v};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"causal_attention", &causal_attention_cpu>(library);
  implement<"causal_attention_backward", &causal_attention_backward_cpu>(library);
}
