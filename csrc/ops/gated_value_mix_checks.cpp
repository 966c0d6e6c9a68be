#include "csrc/ops/gated_value_mix_checks.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include "csrc/ops/checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

void check_intervention(const Argument& x, const Argument& values, const at::Tensor& logits) {
  TORCH_CHECK_TYPE(at::isFloatingType(x.tensor.scalar_type()) && !at::isFloat8Type(x.tensor.scalar_type()), x.op, ": ",
                   x.name, " must be float32, bfloat16, float16 or float64, got ", x.tensor.scalar_type());
  TORCH_CHECK(at::is_expandable_to(x.tensor.sym_sizes(), logits.sym_sizes()), x.op, ": ", x.name,
              " must broadcast to the shape of logits ", logits.sym_sizes(), ", got ", x.tensor.sym_sizes());
  check_device(x, values);
}

// All but the memory layout of the values.
void check_common(const Argument& values, const GatedValueMixArguments& in) {
  const char* op = values.op;
  check_values(values);
  const Argument first{op, "first_values", in.first_values};
  check_like(first, values);
  check_device(first, values);
  check_last_dimension(first);
  const Argument logits{op, "logits", in.logits};
  check_logits(logits, values);
  check_device(logits, values);
  if (given(in.scale)) check_intervention({op, "scale", *in.scale}, values, in.logits);
  if (given(in.shift)) check_intervention({op, "shift", *in.shift}, values, in.logits);
}

}  // namespace

void check_gated_value_mix(const GatedValueMixArguments& in, bool in_place) {
  const Argument values{in_place ? "gated_value_mix_" : "gated_value_mix", "v", in.values};
  check_common(values, in);
  check_last_dimension(values);
  if (in_place && !in.values.is_meta()) {  // memory exists, and its layout is not symbolic
    at::assert_no_internal_overlap(in.values);
    at::assert_no_partial_overlap(in.values, in.first_values);
    at::assert_no_partial_overlap(in.values, in.logits);
  }
}

void check_gated_value_mix_backward(const GatedValueMixArguments& in) {
  check_common({"gated_value_mix_backward", "grad", in.values}, in);
}

GateArguments gate_arguments(const GatedValueMixArguments& in) {
  return {in.gate, in.logits, given(in.scale) ? in.scale->expand(in.logits.sizes()) : at::Tensor(),
          given(in.shift) ? in.shift->expand(in.logits.sizes()) : at::Tensor()};
}

std::array<bool, 4> wanted_gradients(std::array<bool, 4> output_mask, const std::optional<at::Tensor>& scale,
                                     const std::optional<at::Tensor>& shift) {
  return {output_mask[0], output_mask[1], output_mask[2] && given(scale), output_mask[3] && given(shift)};
}

GatedValueMixGradients outputs_of_gated_value_mix_backward(const GatedValueMixArguments& in,
                                                           const std::array<bool, 4>& output_mask) {
  const std::array<bool, 4> wanted = wanted_gradients(output_mask, in.scale, in.shift);
  const auto values_shape = in.first_values.sym_sizes();
  const auto gates_shape = in.logits.sym_sizes();
  const auto terms_options = in.logits.options().dtype(accumulate_dtype(in.first_values));
  GatedValueMixGradients gradients;
  if (wanted[0]) gradients.first_values = at::empty_symint(values_shape, in.first_values.options());
  if (wanted[1]) gradients.logits = at::empty_symint(gates_shape, in.logits.options());
  if (wanted[2]) gradients.scale_terms = at::empty_symint(gates_shape, terms_options);
  if (wanted[3]) gradients.shift_terms = at::empty_symint(gates_shape, terms_options);
  return gradients;
}

at::Tensor sum_terms(const at::Tensor& terms, const std::optional<at::Tensor>& like) {
  if (!terms.defined()) return {};
  return at::sum_to(terms, like->sym_sizes()).to(like->scalar_type());
}

}  // namespace satformer::ops
