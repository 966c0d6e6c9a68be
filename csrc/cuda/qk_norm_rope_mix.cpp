// CUDA: checks, output tensors and stream; the kernels are in qk_norm_rope_mix.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/from_tensor.h"
#include "csrc/cuda/qk_norm_rope_mix_launch.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/qk_norm_rope_mix_checks.h"

namespace satformer::ops::cuda {
namespace {

Table table_of(const at::Tensor& x) {
  return {x.const_data_ptr<float>(), x.dim() == 4 ? x.stride(0) : 0, x.stride(-3)};
}

AttentionPass pass_of(const MixInputs& in, const at::Tensor& q_like, const at::Tensor& k_like) {
  AttentionPass pass{};
  pass.B = q_like.size(0);
  pass.T = q_like.size(1);
  pass.H = q_like.size(2);
  pass.H_kv = k_like.size(2);
  pass.hd = q_like.size(3);
  pass.dtype = dtype_of(q_like);
  pass.cos = table_of(in.cos);
  pass.sin = table_of(in.sin);
  pass.q_weight = floats_of(in.q_weight);
  pass.k_weight = floats_of(in.k_weight);
  pass.eps = static_cast<float>(in.eps);
  pass.mix = value_mix(in);
  pass.gate = in.gate;
  pass.logits = gate_source_of(in.logits);
  pass.first_values = source_of(in.first_values);
  pass.lambda1 = floats_of(in.lambda1);
  pass.lambda2 = floats_of(in.lambda2);
  return pass;
}

MixOutputs qk_norm_rope_mix_cuda(const MixInputs& in) {
  check_qk_norm_rope_mix(in);
  const c10::cuda::CUDAGuard device(in.q.device());
  MixOutputs out = outputs_of_qk_norm_rope_mix(in);
  const MixInputsArguments arguments{pass_of(in, in.q, in.k), source_of(in.q),  source_of(in.k), source_of(in.v),
                                     target_of(out.q),        target_of(out.k), target_of(out.v)};
  C10_CUDA_CHECK(launch_qk_norm_rope_mix(arguments, c10::cuda::getCurrentCUDAStream()));
  return out;
}

MixGradients qk_norm_rope_mix_backward_cuda(const MixOutputs& strided_grads, const MixBackwardInputs& in,
                                            const MixGradientTargets& targets, std::array<bool, 5> output_mask) {
  check_qk_norm_rope_mix_backward(in, strided_grads, targets);
  const c10::cuda::CUDAGuard device(strided_grads.q.device());
  const MixOutputs grads = contiguous_rows(strided_grads);
  MixGradients out = outputs_of_qk_norm_rope_mix_backward(in, targets, output_mask);
  const bool adds = targets.first_values.defined();
  const at::Tensor& to_first_values = adds ? targets.first_values : out.first_values;

  MixInputsBackwardArguments a{};
  a.pass = pass_of(in, grads.q, grads.k);
  a.q = source_of(in.q), a.k = source_of(in.k), a.v = source_of(in.v);
  a.grad_q = source_of(grads.q), a.grad_k = source_of(grads.k), a.grad_v = source_of(grads.v);
  a.to_q = target_of(targets.q), a.to_k = target_of(targets.k), a.to_v = target_of(targets.v);
  a.to_logits = target_of(targets.logits);
  a.to_first_values = target_of(to_first_values);
  a.first_values_dtype = to_first_values.defined() ? dtype_of(to_first_values) : a.pass.dtype;
  a.adds_first_values = adds;
  a.q_weight_grad = mutable_floats_of(out.q_weight);
  a.k_weight_grad = mutable_floats_of(out.k_weight);
  a.lambda1_grad = mutable_floats_of(out.lambda1);
  a.lambda2_grad = mutable_floats_of(out.lambda2);

  const int64_t blocks = backward_blocks(a.pass), hd = a.pass.hd;
  const auto floats = grads.q.options().dtype(at::kFloat);
  const auto scratch = [&](bool needed, std::int64_t size) {
    return needed ? at::empty({size}, floats) : at::Tensor();
  };
  const at::Tensor q_sums = scratch(out.q_weight.defined(), blocks * hd);
  const at::Tensor k_sums = scratch(out.k_weight.defined(), blocks * hd);
  const at::Tensor lambda_sums = scratch(out.lambda1.defined() || out.lambda2.defined(), blocks * 2);
  const at::Tensor dots =
      scratch(in.logits.defined() && is_over_heads(in.gate), in.logits.defined() ? in.logits.numel() : 0);
  a.q_sums = mutable_floats_of(q_sums), a.k_sums = mutable_floats_of(k_sums);
  a.lambda_sums = mutable_floats_of(lambda_sums), a.dots = mutable_floats_of(dots);
  C10_CUDA_CHECK(launch_qk_norm_rope_mix_backward(a, c10::cuda::getCurrentCUDAStream()));
  return out;
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"qk_norm_rope_mix", &cuda::qk_norm_rope_mix_cuda>(library);
  implement<"qk_norm_rope_mix_backward", &cuda::qk_norm_rope_mix_backward_cuda>(library);
}
