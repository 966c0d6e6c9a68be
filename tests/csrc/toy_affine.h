#pragma once
// The operator of docs/adding_an_operator.md: y = factor x + bias, the least that has every kind of file.
//
//   x     [..., n]  float32, bfloat16 or float16; float64 on CPU. Any strides.
//   bias  [n]       x's dtype; absent: 0
//
// One rounding. Differentiable any number of times in x and bias. A wrong argument is a c10::Error that names operator,
// argument and what it got.
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace satformer::tests::toy {

struct Affine {
  at::Tensor x;
  std::optional<at::Tensor> bias;
  double factor = 1.0;

  static constexpr auto fields() { return std::tuple{&Affine::x, &Affine::bias, &Affine::factor}; }
};

at::Tensor toy_affine(const Affine& in);

}  // namespace satformer::tests::toy
