#include "csrc/ops/depth_weighted_sum_checks.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>

#include "csrc/ops/checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

std::string indexed(const char* name, std::size_t i) { return std::string(name) + "[" + std::to_string(i) + "]"; }

// A tensor with one row a token, like sources[0].
void check_rows(const Argument& x, const at::Tensor& first) {
  check_sizes(x, first.sym_sizes());
  check_dtype(x, first.scalar_type());
  check_device(x, {x.op, "sources[0]", first});
}

void check_count(const char* op, const char* name, at::TensorList list, std::size_t expected, const char* of) {
  TORCH_CHECK(list.size() == expected, op, ": ", name, " must hold ", expected, " tensors, one for each ", of, ", got ",
              list.size());
}

void check_weights(const char* op, const at::Tensor& weights, at::TensorList sources) {
  const Argument argument{op, "weights", weights};
  const std::int64_t dimensions = weights.dim();
  TORCH_CHECK(dimensions == 2 || dimensions == 4, op, ": weights must be [C, S] or [B, T, C, S], got ",
              weights.sym_sizes());
  TORCH_CHECK(weights.sym_size(-2) > 0, op, ": weights must have at least 1 way, got ", weights.sym_sizes());
  std::vector<c10::SymInt> expected{weights.sym_size(-2), static_cast<std::int64_t>(sources.size())};
  if (dimensions == 4) expected.insert(expected.begin(), {sources[0].sym_size(0), sources[0].sym_size(1)});
  check_parameter(argument, expected, {op, "sources[0]", sources[0]});
}

void check_vectors(const char* op, const char* name, at::TensorList list, const at::Tensor& first) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_parameter({op, indexed(name, i), list[i]}, {first.sym_size(2)}, {op, "sources[0]", first});
  }
}

// Memory that is added to must not be read or added to elsewhere. Layouts whose overlap is hard to find pass.
void check_apart(const Argument& written, const char* name, at::TensorList others) {
  for (std::size_t i = 0; i < others.size(); ++i) {
    const at::MemOverlapStatus status = at::get_overlap_status(written.tensor, others[i]);
    TORCH_CHECK(status != at::MemOverlapStatus::Full && status != at::MemOverlapStatus::Partial, written.op, ": ",
                written.name, " is added to and must not share memory with ", indexed(name, i), "; clone one of them");
  }
}

void check_inverse_rms_values(const char* op, const at::Tensor& x) {
  TORCH_CHECK(x.dim() > 0, op, ": x must have at least 1 dimension, got []");
  check_values_dtype({op, "x", x});
}

Tensors in_arithmetic_dtype(at::TensorList list, at::ScalarType dtype) {
  Tensors result;
  result.reserve(list.size());
  for (const at::Tensor& x : list) result.push_back(x.to(dtype).contiguous());
  return result;
}

}  // namespace

void check_depth_weighted_sum(const char* op, const DepthSum& a) {
  TORCH_CHECK(!a.sources.empty(), op, ": sources must hold at least 1 tensor, got 0");
  const at::Tensor& first = a.sources[0];
  check_dimensions({op, "sources[0]", first}, 3, "[B, T, d]");
  check_values_dtype({op, "sources[0]", first});
  for (std::size_t j = 0; j < a.sources.size(); ++j) {
    const Argument source{op, indexed("sources", j), a.sources[j]};
    check_rows(source, first);
    check_last_dimension(source);
  }
  check_weights(op, a.weights, a.sources);
  if (given(a.base)) {
    check_rows({op, "base", *a.base}, first);
    check_last_dimension({op, "base", *a.base});
  }
  const std::size_t norms = a.source_norm_weights.empty() && a.source_inverse_rms.empty() ? 0 : a.sources.size();
  check_count(op, "source_norm_weights", a.source_norm_weights, norms, "source");
  check_count(op, "source_inverse_rms", a.source_inverse_rms, norms, "source");
  check_vectors(op, "source_norm_weights", a.source_norm_weights, first);
  for (std::size_t j = 0; j < norms; ++j) {
    const Argument inverse{op, indexed("source_inverse_rms", j), a.source_inverse_rms[j]};
    check_sizes(inverse, first.sym_sizes().slice(0, 2));
    check_dtype(inverse, accumulate_dtype(first));
    check_device(inverse, {op, "sources[0]", first});
  }
  TORCH_CHECK_VALUE(a.output_norm_eps >= 0, op, ": output_norm_eps must not be negative, got ", a.output_norm_eps);
  if (!a.output_norm_weights.empty()) {
    check_count(op, "output_norm_weights", a.output_norm_weights, static_cast<std::size_t>(a.weights.size(-2)), "way");
    check_vectors(op, "output_norm_weights", a.output_norm_weights, first);
  }
}

void check_depth_weighted_sum_backward(const char* op, at::TensorList grads, const DepthSum& a) {
  check_depth_weighted_sum(op, a);
  check_count(op, "grads", grads, ways(a), "way");
  for (std::size_t c = 0; c < grads.size(); ++c) check_rows({op, indexed("grads", c), grads[c]}, a.sources[0]);
}

void check_grad_sources(const char* op, at::TensorList grad_sources, at::TensorList grads, const DepthSum& a) {
  check_count(op, "grad_sources", grad_sources, a.sources.size(), "source");
  for (std::size_t j = 0; j < grad_sources.size(); ++j) {
    const Argument grad{op, indexed("grad_sources", j), grad_sources[j]};
    check_rows(grad, a.sources[0]);
    check_last_dimension(grad);
    if (grad.tensor.is_meta()) continue;  // no memory
    at::assert_no_internal_overlap(grad.tensor);
    check_apart(grad, "grad_sources", grad_sources.slice(0, j));
    check_apart(grad, "grads", grads);
    check_apart(grad, "sources", a.sources);
  }
}

void check_inverse_rms(const at::Tensor& x, double eps) {
  check_inverse_rms_values("inverse_rms", x);
  TORCH_CHECK_VALUE(eps >= 0, "inverse_rms: eps must not be negative, got ", eps);
}

void check_inverse_rms_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  const char* op = "inverse_rms_backward";
  check_inverse_rms_values(op, x);
  for (const Argument& argument : {Argument{op, "grad", grad}, Argument{op, "inverse", inverse}}) {
    check_sizes(argument, x.sym_sizes().slice(0, x.dim() - 1));
    check_dtype(argument, accumulate_dtype(x));
    check_device(argument, {op, "x", x});
  }
}

DepthSumParameters::DepthSumParameters(const DepthSum& a)
    : weights(a.weights.to(accumulate_dtype(values_dtype(a))).contiguous()),
      norm_weights(in_arithmetic_dtype(a.source_norm_weights, weights.scalar_type())),
      inverse_rms(in_arithmetic_dtype(a.source_inverse_rms, weights.scalar_type())),
      output_norm_weights(in_arithmetic_dtype(a.output_norm_weights, weights.scalar_type())) {}

Tensors outputs_of_depth_weighted_sum(const DepthSum& a) {
  Tensors out;
  for (std::size_t c = 0; c < ways(a); ++c) {
    out.push_back(at::empty_symint(a.sources[0].sym_sizes(), a.sources[0].options()));
  }
  return out;
}

DepthSumMask wanted_gradients(const DepthSumMask& mask, const DepthSum& a) {
  const bool norms = !a.source_norm_weights.empty();
  return {mask[0],          mask[1],          mask[2] && given(a.base),
          mask[3] && norms, mask[4] && norms, mask[5] && !a.output_norm_weights.empty()};
}

DepthSumBackwardOutputs::DepthSumBackwardOutputs(const DepthSum& a, const DepthSumMask& wanted, bool with_sources) {
  const at::Tensor& first = a.sources[0];
  const at::TensorOptions arithmetic = first.options().dtype(accumulate_dtype(values_dtype(a)));
  const auto S = static_cast<std::int64_t>(a.sources.size()), C = static_cast<std::int64_t>(a.weights.size(-2));
  const auto empty = [](const std::vector<c10::SymInt>& shape, const at::TensorOptions& options) {
    return at::empty_symint(shape, options);
  };
  const auto rows = first.sym_sizes().vec();
  if (wanted[0] && with_sources) {
    for (std::int64_t j = 0; j < S; ++j) sources.push_back(empty(rows, first.options()));
  }
  if (wanted[1]) weights = empty(a.weights.sym_sizes().vec(), arithmetic);
  if (wanted[2]) base = empty(rows, first.options());
  if (wanted[3]) norm_weights = empty({S, rows[2]}, arithmetic);
  if (wanted[4]) inverse_rms = empty({S, rows[0], rows[1]}, arithmetic);
  if (wanted[5]) output_norm_weights = empty({C, rows[2]}, arithmetic);
}

DepthSumGradients DepthSumBackwardOutputs::gradients(const DepthSum& a) const {
  // Copies: results of an operator may not share memory.
  const auto each = [](const at::Tensor& stacked, at::TensorList like) {
    Tensors result;
    for (std::size_t i = 0; stacked.defined() && i < like.size(); ++i) {
      result.push_back(stacked.select(0, static_cast<std::int64_t>(i)).to(like[i].scalar_type(), false, /*copy=*/true));
    }
    return result;
  };
  return {sources,
          weights.defined() ? weights.to(a.weights.scalar_type()) : weights,
          base,
          each(norm_weights, a.source_norm_weights),
          each(inverse_rms, a.source_inverse_rms),
          each(output_norm_weights, a.output_norm_weights)};
}

}  // namespace satformer::ops
