#pragma once
// Tensors [..., n] taken as rows of n numbers: what the operators that work row by row share. The checks use symbolic
// sizes, so that every dispatch key calls the same ones, and throw a c10::Error that names operator and argument.
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace satformer::ops {

// An operator's argument, for messages.
struct Argument {
  const char* op;
  const char* name;
  const at::Tensor& tensor;
};

// float32, bfloat16, float16; float64 on CPU alone.
void check_floating(const Argument& argument);
void check_floating(const char* op, const char* name, at::ScalarType dtype, at::Device device);
// At least `dims` dimensions, named as in `shape`, for instance "[..., n]".
void check_dims_at_least(const Argument& argument, int64_t dims, const char* shape);
// Exactly these sizes; `why` continues the sentence, for instance " like x".
void check_sizes(const Argument& argument, c10::SymIntArrayRef expected, const char* why);
void check_same_dtype(const Argument& argument, const Argument& like);
void check_same_device(const Argument& argument, const Argument& like);

// What x is computed in: float32, float64 for float64.
inline at::ScalarType arithmetic_dtype(const at::Tensor& x) { return at::toOpMathType(x.scalar_type()); }

inline bool given(const std::optional<at::Tensor>& x) { return x.has_value() && x->defined(); }

// x as [rows, n], contiguous in n: a view where the strides allow one, else a copy. Also for rows or n 0.
at::Tensor rows_of(const at::Tensor& x);

}  // namespace satformer::ops
