#include "csrc/ops/checks.h"

#include <c10/util/Exception.h>

namespace satformer::ops {

void check_dimensions(const Argument& x, int64_t dims, const char* shape) {
  TORCH_CHECK(x.tensor.dim() == dims, x.op, ": ", x.name, " must have the ", dims, " dimensions ", shape, ", got ",
              x.tensor.sym_sizes());
}

void check_dims_at_least(const Argument& x, int64_t dims, const char* shape) {
  TORCH_CHECK(x.tensor.dim() >= dims, x.op, ": ", x.name, " must be ", shape, ", got ", x.tensor.sym_sizes());
}

void check_sizes(const Argument& x, c10::SymIntArrayRef expected, const char* why) {
  TORCH_CHECK(x.tensor.sym_sizes() == expected, x.op, ": ", x.name, " must be ", expected, why, ", got ",
              x.tensor.sym_sizes());
}

void check_last_dimension(const Argument& x) {
  TORCH_CHECK(x.tensor.sym_size(-1) <= 1 || x.tensor.sym_stride(-1) == 1, x.op, ": ", x.name,
              " must be contiguous in its last dimension, got strides ", x.tensor.sym_strides(),
              "; call contiguous() on it first");
}

void check_values_dtype(const char* op, const std::string& name, at::ScalarType dtype, at::Device device) {
  const bool known = dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf;
  TORCH_CHECK_TYPE(known || (dtype == at::kDouble && !device.is_cuda()), op, ": ", name,
                   " must be float32, bfloat16 or float16 (float64 on CPU alone), got ", dtype, " on ", device);
}

void check_values_dtype(const Argument& x) {
  check_values_dtype(x.op, x.name, x.tensor.scalar_type(), x.tensor.device());
}

void check_floating(const Argument& x) {
  const at::ScalarType dtype = x.tensor.scalar_type();
  TORCH_CHECK_TYPE(at::isFloatingType(dtype) && !at::isFloat8Type(dtype), x.op, ": ", x.name,
                   " must be float32, bfloat16, float16 or float64, got ", dtype);
}

void check_dtype(const Argument& x, at::ScalarType expected) {
  TORCH_CHECK_TYPE(x.tensor.scalar_type() == expected, x.op, ": ", x.name, " must be ", expected, ", got ",
                   x.tensor.scalar_type());
}

void check_same_dtype(const Argument& x, const Argument& like) {
  TORCH_CHECK_TYPE(x.tensor.scalar_type() == like.tensor.scalar_type(), x.op, ": ", x.name, " must be ",
                   like.tensor.scalar_type(), " like ", like.name, ", got ", x.tensor.scalar_type());
}

void check_device(const Argument& x, const Argument& like) {
  TORCH_CHECK(x.tensor.device() == like.tensor.device(), x.op, ": ", x.name, " must be on ", like.tensor.device(),
              " like ", like.name, ", got ", x.tensor.device());
}

void check_like(const Argument& x, const Argument& like) {
  TORCH_CHECK(x.tensor.sym_sizes() == like.tensor.sym_sizes(), x.op, ": ", x.name, " must be ", like.tensor.sym_sizes(),
              " like ", like.name, ", got ", x.tensor.sym_sizes());
  check_same_dtype(x, like);
}

void check_parameter(const Argument& x, c10::SymIntArrayRef expected, const Argument& like) {
  check_sizes(x, expected);
  check_floating(x);
  check_device(x, like);
}

void check_values(const Argument& values, const char* shape) {
  check_dimensions(values, 4, shape);
  check_values_dtype(values);
}

void check_logits(const Argument& logits, const Argument& values) {
  const at::Tensor& x = logits.tensor;
  const auto expected = values.tensor.sym_sizes().slice(0, 3);
  TORCH_CHECK(x.sym_sizes() == expected, logits.op, ": ", logits.name, " must be ", expected, " like ", values.name,
              " without its last dimension, got ", x.sym_sizes());
  TORCH_CHECK_TYPE(x.scalar_type() == at::kFloat || x.scalar_type() == values.tensor.scalar_type(), logits.op, ": ",
                   logits.name, " must be float32 or ", values.tensor.scalar_type(), " like ", values.name, ", got ",
                   x.scalar_type());
}

Gate check_gate(const char* op, std::string_view name) {
  const std::optional<Gate> gate = find_gate(name);
  TORCH_CHECK_VALUE(gate.has_value(), op, ": gate must be one of ", gate_names(), ", got \"", name, "\"");
  return *gate;
}

Gate gate_from_name(std::string_view name) {
  const std::optional<Gate> gate = find_gate(name);
  TORCH_CHECK_VALUE(gate.has_value(), "gate must be one of ", gate_names(), ", got \"", name, "\"");
  return *gate;
}

}  // namespace satformer::ops
