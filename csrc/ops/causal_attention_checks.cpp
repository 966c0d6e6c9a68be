#include "csrc/ops/causal_attention_checks.h"

#include <ATen/ops/empty.h>

#include "csrc/ops/checks.h"

namespace satformer::ops {
namespace {

struct Arguments {
  Argument q, k, v;
};

void check_arguments(const Arguments& in) {
  const at::Tensor& q = in.q.tensor;
  TORCH_CHECK_TYPE(q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble, in.q.op,
                   ": q must be float32 or float64, got ", q.scalar_type());
  check_dimensions(in.q, 4, "[B, T, H, hd]");
  TORCH_CHECK(q.sym_size(3) > 0, in.q.op, ": q must have numbers in its heads, got ", q.sym_sizes());
  check_dimensions(in.k, 4, "[B, T, H_kv, hd]");
  const c10::SymInt heads = q.sym_size(2), kv_heads = in.k.tensor.sym_size(2);
  check_sizes(in.k, {q.sym_size(0), q.sym_size(1), kv_heads, q.sym_size(3)}, ", as q is");
  TORCH_CHECK(kv_heads == heads || (kv_heads > 0 && heads % kv_heads == 0), in.k.op,
              ": the number of k's heads must divide q's ", heads, ", got ", kv_heads);
  check_same_dtype(in.k, in.q);
  check_device(in.k, in.q);
  check_sizes(in.v, in.k.tensor.sym_sizes(), ", as k is");
  check_same_dtype(in.v, in.q);
  check_device(in.v, in.q);
}

void check_beside_q(const Argument& x, const Argument& q, c10::SymIntArrayRef sizes, const char* why) {
  check_sizes(x, sizes, why);
  check_same_dtype(x, q);
  check_device(x, q);
}

std::vector<c10::SymInt> logsumexp_sizes(const at::Tensor& q) { return {q.sym_size(0), q.sym_size(2), q.sym_size(1)}; }

}  // namespace

std::tuple<at::Tensor, at::Tensor> outputs_of_causal_attention(const at::Tensor& q, const at::Tensor& k,
                                                               const at::Tensor& v) {
  constexpr const char* kOp = "causal_attention";
  check_arguments({{kOp, "q", q}, {kOp, "k", k}, {kOp, "v", v}});
  return {at::empty_symint(q.sym_sizes(), q.options()), at::empty_symint(logsumexp_sizes(q), q.options())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> outputs_of_causal_attention_backward(
    const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
    const at::Tensor& logsumexp) {
  constexpr const char* kOp = "causal_attention_backward";
  const Argument named{kOp, "q", q};
  check_arguments({named, {kOp, "k", k}, {kOp, "v", v}});
  check_beside_q({kOp, "grad", grad}, named, q.sym_sizes(), ", as q is");
  check_beside_q({kOp, "out", out}, named, q.sym_sizes(), ", as q is");
  check_beside_q({kOp, "logsumexp", logsumexp}, named, logsumexp_sizes(q), ", q's [B, H, T]");
  const auto empty = [](const at::Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); };
  return {empty(q), empty(k), empty(v)};
}

}  // namespace satformer::ops
