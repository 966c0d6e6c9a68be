#include "csrc/ops/row_arguments.h"

#include <c10/util/accumulate.h>

namespace satformer::ops {

void check_floating(const char* op, const char* name, at::ScalarType dtype, at::Device device) {
  const bool known = dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf;
  TORCH_CHECK_TYPE(known || (dtype == at::kDouble && !device.is_cuda()), op, ": ", name,
                   " must be float32, bfloat16 or float16 (float64 on CPU alone), got ", dtype, " on ", device);
}

void check_floating(const Argument& x) { check_floating(x.op, x.name, x.tensor.scalar_type(), x.tensor.device()); }

void check_dims_at_least(const Argument& x, int64_t dims, const char* shape) {
  TORCH_CHECK(x.tensor.dim() >= dims, x.op, ": ", x.name, " must be ", shape, ", got ", x.tensor.sym_sizes());
}

void check_sizes(const Argument& x, c10::SymIntArrayRef expected, const char* why) {
  TORCH_CHECK(x.tensor.sym_sizes() == expected, x.op, ": ", x.name, " must be ", expected, why, ", got ",
              x.tensor.sym_sizes());
}

void check_same_dtype(const Argument& x, const Argument& like) {
  TORCH_CHECK_TYPE(x.tensor.scalar_type() == like.tensor.scalar_type(), x.op, ": ", x.name, " must be ",
                   like.tensor.scalar_type(), " like ", like.name, ", got ", x.tensor.scalar_type());
}

void check_same_device(const Argument& x, const Argument& like) {
  TORCH_CHECK(x.tensor.device() == like.tensor.device(), x.op, ": ", x.name, " must be on ", like.tensor.device(),
              " like ", like.name, ", got ", x.tensor.device());
}

at::Tensor rows_of(const at::Tensor& x) {
  const int64_t n = x.size(-1), rows = c10::multiply_integers(x.sizes().slice(0, x.dim() - 1));
  return (n <= 1 || x.stride(-1) == 1 ? x : x.contiguous()).reshape({rows, n});
}

}  // namespace satformer::ops
