#include "csrc/ops/checks.h"

#include <c10/util/Exception.h>

namespace satformer::ops {

void check_values(const Named& values, const char* shape) {
  const at::Tensor& x = values.tensor;
  TORCH_CHECK(x.dim() == 4, values.op, ": ", values.name, " must have the 4 dimensions ", shape, ", got ",
              x.sym_sizes());
  const at::ScalarType dtype = x.scalar_type();
  const bool known = dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf;
  TORCH_CHECK_TYPE(known || (dtype == at::kDouble && !x.is_cuda()), values.op, ": ", values.name,
                   " must be float32, bfloat16 or float16 (float64 on CPU alone), got ", dtype, " on ", x.device());
}

void check_last_dimension(const Named& values) {
  const at::Tensor& x = values.tensor;
  TORCH_CHECK(x.sym_size(3) <= 1 || x.sym_stride(3) == 1, values.op, ": ", values.name,
              " must be contiguous in its last dimension, got strides ", x.sym_strides(),
              "; call contiguous() on it first");
}

void check_like(const Named& other, const Named& values) {
  const at::Tensor& x = other.tensor;
  TORCH_CHECK(x.sym_sizes() == values.tensor.sym_sizes(), other.op, ": ", other.name, " must be ",
              values.tensor.sym_sizes(), " like ", values.name, ", got ", x.sym_sizes());
  TORCH_CHECK_TYPE(x.scalar_type() == values.tensor.scalar_type(), other.op, ": ", other.name, " must be ",
                   values.tensor.scalar_type(), " like ", values.name, ", got ", x.scalar_type());
}

void check_device(const Named& other, const Named& values) {
  TORCH_CHECK(other.tensor.device() == values.tensor.device(), other.op, ": ", other.name, " must be on ",
              values.tensor.device(), " like ", values.name, ", got ", other.tensor.device());
}

void check_logits(const Named& logits, const Named& values) {
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

}  // namespace satformer::ops
