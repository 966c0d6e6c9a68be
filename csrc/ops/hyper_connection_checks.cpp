#include "csrc/ops/hyper_connection_checks.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "csrc/ops/checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

void check_streams(const Argument& streams) {
  check_dimensions(streams, 4, "[B, T, n, d]");
  check_values_dtype(streams);
  const c10::SymInt n = streams.tensor.sym_size(2);
  TORCH_CHECK(n >= 1 && n <= kMaxStreams, streams.op, ": ", streams.name, " must hold 1 to ", kMaxStreams,
              " streams [B, T, n, d], got ", streams.tensor.sym_sizes());
}

void check_dynamic_part(const char* op, const HyperConnectionArguments& a) {
  const c10::SymInt n = a.streams.sym_size(2), d = a.streams.sym_size(3);
  const auto check = [&](const char* name, const std::optional<at::Tensor>& x, at::SymIntArrayRef shape, bool needed) {
    TORCH_CHECK(given(x) == needed, op, ": ", name, needed ? " is needed with" : " must be absent without",
                " norm_weight, got ", given(x) ? "a tensor" : "none");
    if (needed) check_parameter({op, name, *x}, shape, {op, "streams", a.streams});
  };
  check("norm_weight", a.norm_weight, {d}, a.dynamic());
  check("norm_bias", a.norm_bias, {d}, a.dynamic() && a.layer_norm());
  check("dynamic_alpha_proj", a.dynamic_alpha_proj, {d, n + 1}, a.dynamic());
  check("dynamic_beta_proj", a.dynamic_beta_proj, {d}, a.dynamic());
  check("dynamic_alpha_scale", a.dynamic_alpha_scale, {1}, a.dynamic());
  check("dynamic_beta_scale", a.dynamic_beta_scale, {1}, a.dynamic());
}

// beta and out beside the streams that they belong to.
void check_beta_and_out(const Argument& streams, const at::Tensor& beta, const at::Tensor& out) {
  const at::Tensor& x = streams.tensor;
  check_parameter({streams.op, "beta", beta}, x.sym_sizes().slice(0, 3), streams);
  check_parameter({streams.op, "out", out}, {x.sym_size(0), x.sym_size(1), x.sym_size(3)}, streams);
}

}  // namespace

void check_hyper_connection_read(const char* op, const HyperConnectionArguments& a) {
  const Argument streams{op, "streams", a.streams};
  check_streams(streams);
  check_last_dimension(streams);
  const c10::SymInt n = a.streams.sym_size(2);
  TORCH_CHECK(a.streams.sym_size(3) >= 1, op, ": streams must have at least 1 column [B, T, n, d], got ",
              a.streams.sym_sizes());
  TORCH_CHECK_VALUE(a.norm_eps >= 0, op, ": norm_eps must not be negative, got ", a.norm_eps);
  check_parameter({op, "static_alpha", a.static_alpha}, {n, n + 1}, streams);
  check_parameter({op, "static_beta", a.static_beta}, {n}, streams);
  check_dynamic_part(op, a);
}

void check_hyper_connection_read_backward(const char* op, const HyperConnectionReadGradients& grads,
                                          const HyperConnectionArguments& a, const at::Tensor& kept) {
  check_hyper_connection_read(op, a);
  const auto shape = a.streams.sym_sizes();
  const auto check = [&](const char* name, const at::Tensor& x, at::SymIntArrayRef expected, at::ScalarType dtype) {
    check_sizes({op, name, x}, expected);
    check_dtype({op, name, x}, dtype);
    check_device({op, name, x}, {op, "streams", a.streams});
  };
  check("grad_input", grads.input, {shape[0], shape[1], shape[3]}, a.streams.scalar_type());
  check("grad_mixed", grads.mixed, shape, a.streams.scalar_type());
  check("grad_beta", grads.beta, shape.slice(0, 3), a.arithmetic());
  if (a.dynamic()) check("kept", kept, {shape[0], shape[1], shape[2], shape[2] + 4}, a.arithmetic());
}

void check_hyper_connection_write(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out,
                                  bool in_place) {
  const Argument streams{in_place ? "hyper_connection_write_" : "hyper_connection_write", "mixed", mixed};
  check_streams(streams);
  check_last_dimension(streams);
  check_beta_and_out(streams, beta, out);
  if (in_place && !mixed.is_meta()) {  // memory exists, and its layout is not symbolic
    at::assert_no_internal_overlap(mixed);
    for (const Argument& x : {Argument{streams.op, "out", out}, Argument{streams.op, "beta", beta}}) {
      TORCH_CHECK(!x.tensor.is_alias_of(mixed), x.op, ": ", x.name,
                  " must not share memory with mixed, which is overwritten; clone it or use hyper_connection_write");
    }
  }
}

void check_hyper_connection_write_backward(const at::Tensor& grad, const at::Tensor& beta, const at::Tensor& out) {
  const Argument streams{"hyper_connection_write_backward", "grad", grad};
  check_streams(streams);
  check_beta_and_out(streams, beta, out);
}

HyperConnectionRead outputs_of_hyper_connection_read(const HyperConnectionArguments& a) {
  const auto shape = a.streams.sym_sizes();
  const at::TensorOptions values = a.streams.options(), arithmetic = values.dtype(a.arithmetic());
  const c10::SymInt &B = shape[0], &T = shape[1], &n = shape[2], &d = shape[3];
  return {at::empty_symint({B, T, d}, values), at::empty_symint({B, T, n, d}, values),
          at::empty_symint({B, T, n}, arithmetic),
          a.dynamic() ? at::empty_symint({B, T, n, n + 4}, arithmetic) : at::empty({0}, arithmetic)};
}

namespace {

// The columns of both projections as rows, [n+2, d].
at::Tensor projection_rows(const HyperConnectionArguments& a) {
  return at::cat({a.dynamic_alpha_proj->to(a.arithmetic()).t(), a.dynamic_beta_proj->to(a.arithmetic()).unsqueeze(0)});
}

}  // namespace

HyperConnectionParameters::HyperConnectionParameters(const HyperConnectionArguments& a)
    : static_alpha(a.static_alpha.to(a.arithmetic()).contiguous()),
      static_beta(a.static_beta.to(a.arithmetic()).contiguous()) {
  if (!a.dynamic()) return;
  const at::Tensor rows = projection_rows(a);
  projections = rows * a.norm_weight->to(a.arithmetic());
  if (a.layer_norm()) {
    offsets = (rows * a.norm_bias->to(a.arithmetic())).sum(-1);
    means = projections.mean(-1);
  } else {
    offsets = at::zeros({rows.size(0)}, rows.options());
    means = offsets;
  }
  alpha_scale = a.dynamic_alpha_scale->to(a.arithmetic()).contiguous();
  beta_scale = a.dynamic_beta_scale->to(a.arithmetic()).contiguous();
}

HyperConnectionGradients hyper_connection_gradients(const at::Tensor& grad_streams, const at::Tensor& sums,
                                                    const HyperConnectionArguments& a) {
  const c10::SymInt n = a.streams.sym_size(2), d = a.streams.sym_size(3), products = n + 2;
  c10::SymInt offset = 0;
  const auto next = [&](at::SymIntArrayRef shape) {
    c10::SymInt count = 1;
    for (const c10::SymInt& size : shape) count *= size;
    const at::Tensor part = sums.slice_symint(0, offset, offset + count).view_symint(shape);
    offset += count;
    return part;
  };
  // Copies: results of an operator may not share memory.
  const auto like = [](const at::Tensor& x, const at::Tensor& parameter) {
    return x.to(parameter.scalar_type(), /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
  };
  at::Tensor norm_weight, norm_bias, alpha_proj, beta_proj, alpha_scale, beta_scale;
  if (a.dynamic()) {
    const at::Tensor rows = projection_rows(a), logits_times_rows = next({products, d}), logits = next({products});
    norm_weight = like((rows * logits_times_rows).sum(0), *a.norm_weight);
    at::Tensor projections = logits_times_rows * a.norm_weight->to(a.arithmetic());
    if (a.layer_norm()) {
      const at::Tensor column = logits.unsqueeze(-1);
      norm_bias = like((rows * column).sum(0), *a.norm_bias);
      projections = projections + column * a.norm_bias->to(a.arithmetic());
    }
    alpha_proj = like(projections.slice_symint(0, 0, n + 1).t(), *a.dynamic_alpha_proj);
    beta_proj = like(projections.select_symint(0, n + 1), *a.dynamic_beta_proj);
    alpha_scale = like(next({1}), *a.dynamic_alpha_scale);
    beta_scale = like(next({1}), *a.dynamic_beta_scale);
  }
  const at::Tensor static_alpha = like(next({n, n + 1}), a.static_alpha), static_beta = like(next({n}), a.static_beta);
  return {grad_streams, static_alpha, static_beta, norm_weight, norm_bias,
          alpha_proj,   beta_proj,    alpha_scale, beta_scale};
}

}  // namespace satformer::ops
