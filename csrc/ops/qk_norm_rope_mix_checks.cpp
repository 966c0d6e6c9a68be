#include "csrc/ops/qk_norm_rope_mix_checks.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>

#include "csrc/ops/checks.h"
#include "csrc/ops/limits.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

// q or its gradient: every other shape, dtype and device follows from it.
void check_base(const Argument& q) {
  check_values(q, "[B, T, H, hd]");
  const c10::SymInt hd = q.tensor.sym_size(3);
  TORCH_CHECK(hd >= 2 && hd % 2 == 0, q.op, ": ", q.name, " must have an even head dim of at least 2, got ", hd);
  TORCH_CHECK(!q.tensor.is_cuda() || hd <= kLargestCudaHeadDim, q.op, ": ", q.name, " must have a head dim of at most ",
              kLargestCudaHeadDim, " on CUDA, got ", hd);
}

// k or its gradient: q's shape save for the number of heads.
void check_key(const Argument& k, const Argument& q) {
  const at::Tensor &x = k.tensor, &base = q.tensor;
  check_values(k);
  TORCH_CHECK(
      x.sym_size(0) == base.sym_size(0) && x.sym_size(1) == base.sym_size(1) && x.sym_size(3) == base.sym_size(3), k.op,
      ": ", k.name, " must be [", base.sym_size(0), ", ", base.sym_size(1), ", H_kv, ", base.sym_size(3), "] like ",
      q.name, ", got ", x.sym_sizes());
  TORCH_CHECK_TYPE(x.scalar_type() == base.scalar_type(), k.op, ": ", k.name, " must be ", base.scalar_type(), " like ",
                   q.name, ", got ", x.scalar_type());
  check_device(k, q);
}

// A tensor of values like `values`, its rows contiguous.
void check_rows(const Argument& x, const Argument& values) {
  check_like(x, values);
  check_device(x, values);
  check_last_dimension(x);
}

void check_arithmetic_dtype(const Argument& x, const Argument& q) {
  const at::ScalarType expected = accumulate_dtype(q.tensor);
  TORCH_CHECK_TYPE(x.tensor.scalar_type() == expected, x.op, ": ", x.name, " must be ", expected, " beside ",
                   q.tensor.scalar_type(), " ", q.name, ", got ", x.tensor.scalar_type());
  check_device(x, q);
}

void check_table(const Argument& table, const Argument& q) {
  const at::Tensor& x = table.tensor;
  const std::array<c10::SymInt, 4> full{q.tensor.sym_size(0), q.tensor.sym_size(1), 1, q.tensor.sym_size(3) / 2};
  const c10::SymIntArrayRef by_row(full), by_position = by_row.slice(1);
  TORCH_CHECK(x.sym_sizes() == by_position || x.sym_sizes() == by_row, table.op, ": ", table.name,
              " must be [T, 1, hd/2] = ", by_position, " or [B, T, 1, hd/2] = ", by_row, ", got ", x.sym_sizes());
  TORCH_CHECK(x.sym_size(-1) <= 1 || x.sym_stride(-1) == 1, table.op, ": ", table.name,
              " must be contiguous in its last dimension, got strides ", x.sym_strides());
  check_arithmetic_dtype(table, q);
}

void check_weight(const Argument& weight, const Argument& q) {
  const at::Tensor& x = weight.tensor;
  TORCH_CHECK(x.dim() == 1 && x.sym_size(0) == q.tensor.sym_size(3), weight.op, ": ", weight.name, " must be [",
              q.tensor.sym_size(3), "], the head dim, got ", x.sym_sizes());
  TORCH_CHECK(x.sym_stride(0) == 1, weight.op, ": ", weight.name, " must be contiguous, got strides ", x.sym_strides());
  check_arithmetic_dtype(weight, q);
}

void check_lambda(const Argument& lambda, const Argument& q) {
  TORCH_CHECK(lambda.tensor.dim() == 0, lambda.op, ": ", lambda.name, " must be a scalar [], got ",
              lambda.tensor.sym_sizes());
  check_arithmetic_dtype(lambda, q);
}

// first_values with logits, or with both lambdas, or none of them.
void check_mix(const char* op, const MixInputs& in, const Argument& q, const Argument& k) {
  const bool lambdas = in.lambda1.defined() && in.lambda2.defined();
  const bool any = in.logits.defined() || in.lambda1.defined() || in.lambda2.defined();
  const auto given = [](const at::Tensor& x) { return x.defined() ? " given, " : " absent, "; };
  TORCH_CHECK(
      in.first_values.defined() ? in.logits.defined() != lambdas && in.lambda1.defined() == in.lambda2.defined() : !any,
      op,
      ": first_values must be given with logits, or with lambda1 and lambda2, or all four be absent, got "
      "first_values",
      given(in.first_values), "logits", given(in.logits), "lambda1", given(in.lambda1), "lambda2 ",
      in.lambda2.defined() ? "given" : "absent");
  if (!in.first_values.defined()) return;
  check_rows({op, "first_values", in.first_values}, k);
  if (in.logits.defined()) {
    const Argument logits{op, "logits", in.logits};
    check_logits(logits, k);
    check_device(logits, k);
  } else {
    check_lambda({op, "lambda1", in.lambda1}, q);
    check_lambda({op, "lambda2", in.lambda2}, q);
  }
}

// All but q, k and v.
void check_common(const char* op, const MixInputs& in, const Argument& q, const Argument& k) {
  check_table({op, "cos", in.cos}, q);
  check_table({op, "sin", in.sin}, q);
  TORCH_CHECK(in.sin.sym_sizes() == in.cos.sym_sizes(), op, ": sin must be ", in.cos.sym_sizes(), " like cos, got ",
              in.sin.sym_sizes());
  TORCH_CHECK(in.q_weight.defined() == in.k_weight.defined(), op,
              ": q_weight and k_weight must both be given or both be absent, got q_weight ",
              in.q_weight.defined() ? "given" : "absent", ", k_weight ", in.k_weight.defined() ? "given" : "absent");
  if (in.q_weight.defined()) {
    check_weight({op, "q_weight", in.q_weight}, q);
    check_weight({op, "k_weight", in.k_weight}, q);
  }
  TORCH_CHECK_VALUE(in.eps >= 0, op, ": eps must not be negative, got ", in.eps);
  check_mix(op, in, q, k);
}

void check_target(const Argument& target, const Argument& like) {
  check_rows(target, like);
  if (!target.tensor.is_meta()) at::assert_no_internal_overlap(target.tensor);
}

void check_value_gradient(const char* op, const MixInputs& in, const MixOutputs& grads,
                          const MixGradientTargets& targets, const Argument& k) {
  const bool needed = value_mix(in) != ValueMix::kNone;
  TORCH_CHECK(grads.v.defined() == targets.v.defined() && (grads.v.defined() || !needed), op,
              ": grad_v and v_target must both be given", needed ? "" : " or, without a mix, both be absent",
              ", got grad_v ", grads.v.defined() ? "given" : "absent", ", v_target ",
              targets.v.defined() ? "given" : "absent");
  if (!grads.v.defined()) return;
  const Argument grad_v{op, "grad_v", grads.v};
  check_like(grad_v, k);
  check_device(grad_v, k);
  check_target({op, "v_target", targets.v}, k);
}

void check_mix_targets(const char* op, const MixInputs& in, const MixGradientTargets& targets, const Argument& k) {
  TORCH_CHECK(targets.logits.defined() == in.logits.defined(), op, ": logits_target must be ",
              in.logits.defined() ? "given with" : "absent without", " logits, got it ",
              targets.logits.defined() ? "given" : "absent");
  if (targets.logits.defined()) {
    const Argument logits{op, "logits", in.logits}, target{op, "logits_target", targets.logits};
    check_like(target, logits);
    check_device(target, logits);
    if (!targets.logits.is_meta()) at::assert_no_internal_overlap(targets.logits);
  }
  if (!targets.first_values.defined()) return;
  const Argument target{op, "first_values_target", targets.first_values};
  const at::ScalarType dtype = k.tensor.scalar_type(), arithmetic = accumulate_dtype(dtype);
  TORCH_CHECK(in.first_values.defined(), op, ": first_values_target must be absent without first_values, got it given");
  TORCH_CHECK(target.tensor.sym_sizes() == k.tensor.sym_sizes(), op, ": first_values_target must be ",
              k.tensor.sym_sizes(), " like ", k.name, ", got ", target.tensor.sym_sizes());
  TORCH_CHECK_TYPE(target.tensor.scalar_type() == dtype || target.tensor.scalar_type() == arithmetic, op,
                   ": first_values_target must be ", dtype, " or ", arithmetic, ", got ", target.tensor.scalar_type());
  check_device(target, k);
  check_last_dimension(target);
  if (!target.tensor.is_meta()) at::assert_no_internal_overlap(target.tensor);
}

at::Tensor empty_if(bool wanted, const at::Tensor& like) {
  return wanted ? at::empty_symint(like.sym_sizes(), like.options()) : at::Tensor();
}

}  // namespace

void check_qk_norm_rope_mix(const MixInputs& in) {
  const char* op = "qk_norm_rope_mix";
  const Argument q{op, "q", in.q}, k{op, "k", in.k}, v{op, "v", in.v};
  check_base(q);
  check_last_dimension(q);
  check_key(k, q);
  check_last_dimension(k);
  check_rows(v, k);
  check_common(op, in, q, k);
}

void check_qk_norm_rope_mix_backward(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets) {
  const char* op = "qk_norm_rope_mix_backward";
  const Argument grad_q{op, "grad_q", grads.q}, grad_k{op, "grad_k", grads.k};
  check_base(grad_q);
  check_key(grad_k, grad_q);
  check_common(op, in, grad_q, grad_k);
  TORCH_CHECK(!in.q_weight.defined() || (in.q.defined() && in.k.defined()), op,
              ": q and k must be given with q_weight and k_weight, got q ", in.q.defined() ? "given" : "absent", ", k ",
              in.k.defined() ? "given" : "absent");
  TORCH_CHECK(!in.lambda1.defined() || in.v.defined(), op, ": v must be given with lambda1 and lambda2, got it absent");
  if (in.q.defined()) check_rows({op, "q", in.q}, grad_q);
  if (in.k.defined()) check_rows({op, "k", in.k}, grad_k);
  if (in.v.defined()) check_rows({op, "v", in.v}, grad_k);
  check_target({op, "q_target", targets.q}, grad_q);
  check_target({op, "k_target", targets.k}, grad_k);
  check_value_gradient(op, in, grads, targets, grad_k);
  check_mix_targets(op, in, targets, grad_k);
}

MixOutputs outputs_of_qk_norm_rope_mix(const MixInputs& in) {
  const bool writes_values = in.copy_values || value_mix(in) != ValueMix::kNone;
  return {empty_if(true, in.q), empty_if(true, in.k), empty_if(writes_values, in.v)};
}

MixGradients outputs_of_qk_norm_rope_mix_backward(const MixInputs& in, const MixGradientTargets& targets,
                                                  std::array<bool, 5> output_mask) {
  return {empty_if(output_mask[0] && in.q_weight.defined(), in.q_weight),
          empty_if(output_mask[1] && in.k_weight.defined(), in.k_weight),
          empty_if(output_mask[2] && in.first_values.defined() && !targets.first_values.defined(), in.first_values),
          empty_if(output_mask[3] && in.lambda1.defined(), in.lambda1),
          empty_if(output_mask[4] && in.lambda2.defined(), in.lambda2)};
}

MixOutputs contiguous_rows(const MixOutputs& grads) {
  return {contiguous_rows(grads.q), contiguous_rows(grads.k), grads.v.defined() ? contiguous_rows(grads.v) : grads.v};
}

}  // namespace satformer::ops
