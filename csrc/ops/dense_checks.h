#pragma once
// Checks that depth_weighted_sum and hyper_connection share. They use symbolic sizes so that the same code serves
// tracing; each throws a c10::Error that names the operator and the argument.
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

// In a namespace of its own: row_arguments.h has names of the same spelling, and the linker would merge them.
namespace satformer::ops::inline dense {

// The operator and one of its arguments, for messages.
struct Argument {
  const char* op;
  std::string name;
  const at::Tensor& tensor;
};

inline bool given(const std::optional<at::Tensor>& x) { return x.has_value() && x->defined(); }

// The shape, written for the message as `shape`, e.g. "[B, T, d]".
inline void check_dimensions(const Argument& x, std::int64_t dimensions, const char* shape) {
  TORCH_CHECK(x.tensor.dim() == dimensions, x.op, ": ", x.name, " must have the ", dimensions, " dimensions ", shape,
              ", got ", x.tensor.sym_sizes());
}

// A dtype that the kernels compute on.
inline void check_values_dtype(const Argument& x) {
  const at::ScalarType dtype = x.tensor.scalar_type();
  const bool known = dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf;
  TORCH_CHECK_TYPE(known || (dtype == at::kDouble && !x.tensor.is_cuda()), x.op, ": ", x.name,
                   " must be float32, bfloat16 or float16 (float64 on CPU alone), got ", dtype, " on ",
                   x.tensor.device());
}

inline void check_floating(const Argument& x) {
  const at::ScalarType dtype = x.tensor.scalar_type();
  TORCH_CHECK_TYPE(at::isFloatingType(dtype) && !at::isFloat8Type(dtype), x.op, ": ", x.name,
                   " must be float32, bfloat16, float16 or float64, got ", dtype);
}

inline void check_last_dimension(const Argument& x) {
  TORCH_CHECK(x.tensor.sym_size(-1) <= 1 || x.tensor.sym_stride(-1) == 1, x.op, ": ", x.name,
              " must be contiguous in its last dimension, got strides ", x.tensor.sym_strides(),
              "; call contiguous() on it first");
}

inline void check_sizes(const Argument& x, at::SymIntArrayRef expected) {
  TORCH_CHECK(x.tensor.sym_sizes() == expected, x.op, ": ", x.name, " must be ", expected, ", got ",
              x.tensor.sym_sizes());
}

inline void check_dtype(const Argument& x, at::ScalarType expected) {
  TORCH_CHECK_TYPE(x.tensor.scalar_type() == expected, x.op, ": ", x.name, " must be ", expected, ", got ",
                   x.tensor.scalar_type());
}

inline void check_device(const Argument& x, const at::Tensor& like, const char* like_name) {
  TORCH_CHECK(x.tensor.device() == like.device(), x.op, ": ", x.name, " must be on ", like.device(), " like ",
              like_name, ", got ", x.tensor.device());
}

// A parameter: of this shape, any floating dtype, on the device of `like`.
inline void check_parameter(const Argument& x, at::SymIntArrayRef expected, const at::Tensor& like,
                            const char* like_name) {
  check_sizes(x, expected);
  check_floating(x);
  check_device(x, like, like_name);
}

// x itself where its last dimension is contiguous, else a contiguous copy (a gradient may come expanded).
inline at::Tensor with_contiguous_rows(const at::Tensor& x) {
  return x.size(-1) <= 1 || x.stride(-1) == 1 ? x : x.contiguous();
}

}  // namespace satformer::ops::inline dense
