#include "csrc/ops/causal_attention_reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sum.h>

#include <limits>

namespace satformer::ops {
namespace {

// [B, T, heads, hd] -> [B, H, T, hd]: a head of k or v for each query head.
at::Tensor heads_first(const at::Tensor& x, const at::Tensor& q) {
  const c10::SymInt group = x.sym_size(2) == 0 ? c10::SymInt(1) : q.sym_size(2) / x.sym_size(2);
  return x.repeat_interleave_symint(group, 2).transpose(1, 2);
}

// The gradient of x from that of heads_first(x).
at::Tensor heads_back(const at::Tensor& grad, const at::Tensor& x) {
  const c10::SymInt kv_heads = x.sym_size(2);
  if (kv_heads == 0) return grad.transpose(1, 2);
  return grad.transpose(1, 2).unflatten_symint(2, {kv_heads, grad.sym_size(1) / kv_heads}).sum(3);
}

at::Scalar scale_of(const at::Tensor& q) { return c10::SymFloat(1.0) / c10::SymFloat(q.sym_size(3)).sqrt(); }

// [B, H, T, T], -infinity for keys after the query.
at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k) {
  const at::Tensor scores = at::matmul(q.transpose(1, 2), heads_first(k, q).transpose(2, 3)) * scale_of(q);
  const c10::SymInt length = q.sym_size(1);
  const at::Tensor later = at::ones_symint({length, length}, q.options().dtype(at::kBool)).triu(1);
  return scores.masked_fill(later, -std::numeric_limits<double>::infinity());
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> causal_attention_reference(const at::Tensor& q, const at::Tensor& k,
                                                              const at::Tensor& v) {
  const at::Tensor scores = scores_of(q, k), logsumexp = at::logsumexp(scores, {-1});
  const at::Tensor p = at::exp(scores - logsumexp.unsqueeze(-1));
  return {at::matmul(p, heads_first(v, q)).transpose(1, 2).contiguous(), logsumexp};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> causal_attention_backward_reference(const at::Tensor& grad,
                                                                                   const at::Tensor& q,
                                                                                   const at::Tensor& k,
                                                                                   const at::Tensor& v) {
  const at::Tensor p = scores_of(q, k).softmax(-1), g = grad.transpose(1, 2);
  const at::Tensor dp = at::matmul(g, heads_first(v, q).transpose(2, 3));
  const at::Tensor ds = p * (dp - (p * dp).sum(-1, true)) * scale_of(q);
  const at::Tensor dq = at::matmul(ds, heads_first(k, q));
  const at::Tensor dk = at::matmul(ds.transpose(2, 3), q.transpose(1, 2)), dv = at::matmul(p.transpose(2, 3), g);
  return {dq.transpose(1, 2).contiguous(), heads_back(dk, k).contiguous(), heads_back(dv, v).contiguous()};
}

}  // namespace satformer::ops
