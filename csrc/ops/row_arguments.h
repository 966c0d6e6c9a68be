#pragma once
// Tensors [..., n] taken as rows of n numbers.
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace satformer::ops {

// What numbers are computed and added up in: float32, float64 for float64. LibTorch's own rule, as the kernels'
// at::opmath_type.
inline at::ScalarType accumulate_dtype(at::ScalarType dtype) { return at::toOpMathType(dtype); }
inline at::ScalarType accumulate_dtype(const at::Tensor& x) { return accumulate_dtype(x.scalar_type()); }

inline bool given(const std::optional<at::Tensor>& x) { return x.has_value() && x->defined(); }

// x itself where its last dimension is contiguous, else a contiguous copy (a gradient may come expanded).
at::Tensor contiguous_rows(const at::Tensor& x);

// x as [rows, n], contiguous in n: a view where the strides allow one, else a copy. Also for rows or n 0.
at::Tensor rows_of(const at::Tensor& x);

}  // namespace satformer::ops
