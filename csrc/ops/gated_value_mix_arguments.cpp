#include "csrc/ops/gated_value_mix_arguments.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/OpMathType.h>
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

// All but the memory layout of v or grad.
Gate check_common(const Argument& values, const at::Tensor& first_values, const at::Tensor& logits,
                  std::string_view gate, const std::optional<at::Tensor>& scale,
                  const std::optional<at::Tensor>& shift) {
  const char* op = values.op;
  check_values(values);
  const Argument first{op, "first_values", first_values};
  check_like(first, values);
  check_device(first, values);
  check_last_dimension(first);
  const Argument named_logits{op, "logits", logits};
  check_logits(named_logits, values);
  check_device(named_logits, values);
  if (given(scale)) check_intervention({op, "scale", *scale}, values, logits);
  if (given(shift)) check_intervention({op, "shift", *shift}, values, logits);
  return check_gate(op, gate);
}

}  // namespace

Gate check_mix(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits, std::string_view gate,
               const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift, bool in_place) {
  const Argument values{in_place ? "gated_value_mix_" : "gated_value_mix", "v", v};
  const Gate result = check_common(values, first_values, logits, gate, scale, shift);
  check_last_dimension(values);
  if (in_place && !v.is_meta()) {  // memory exists, and its layout is not symbolic
    at::assert_no_internal_overlap(v);
    at::assert_no_partial_overlap(v, first_values);
    at::assert_no_partial_overlap(v, logits);
  }
  return result;
}

Gate check_mix_backward(const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits,
                        std::string_view gate, const std::optional<at::Tensor>& scale,
                        const std::optional<at::Tensor>& shift) {
  return check_common({"gated_value_mix_backward", "grad", grad}, first_values, logits, gate, scale, shift);
}

GateArguments gate_arguments(Gate gate, const at::Tensor& logits, const std::optional<at::Tensor>& scale,
                             const std::optional<at::Tensor>& shift) {
  return {gate, logits, given(scale) ? scale->expand(logits.sizes()) : at::Tensor(),
          given(shift) ? shift->expand(logits.sizes()) : at::Tensor()};
}

std::array<bool, 4> wanted_gradients(std::array<bool, 4> output_mask, const std::optional<at::Tensor>& scale,
                                     const std::optional<at::Tensor>& shift) {
  return {output_mask[0], output_mask[1], output_mask[2] && given(scale), output_mask[3] && given(shift)};
}

MixGradients empty_gradients(const at::Tensor& first_values, const at::Tensor& logits,
                             const std::array<bool, 4>& wanted) {
  const auto values_shape = first_values.sym_sizes();
  const auto gates_shape = logits.sym_sizes();
  const auto terms_options = logits.options().dtype(at::toOpMathType(first_values.scalar_type()));
  MixGradients gradients;
  if (wanted[0]) gradients.first_values = at::empty_symint(values_shape, first_values.options());
  if (wanted[1]) gradients.logits = at::empty_symint(gates_shape, logits.options());
  if (wanted[2]) gradients.scale_terms = at::empty_symint(gates_shape, terms_options);
  if (wanted[3]) gradients.shift_terms = at::empty_symint(gates_shape, terms_options);
  return gradients;
}

at::Tensor sum_terms(const at::Tensor& terms, const std::optional<at::Tensor>& like) {
  if (!terms.defined()) return {};
  return at::sum_to(terms, like->sym_sizes()).to(like->scalar_type());
}

}  // namespace satformer::ops
