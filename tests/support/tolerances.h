#pragma once
// Tolerances of the operators' tests, in one place. A kernel computes in float32 (u = 2^-24; in float64, u = 2^-53, for
// float64) and rounds once to its output's dtype; the expectation is computed in float64 from the same inputs. So
// |got - expected| is at most
//   half a unit in the last place of the output:  rounding(dtype) * |expected|
// + what the arithmetic adds: a few roundings and the error of exp and tanh (about 2 u each), relative to the sum of
// the
//   magnitudes of the terms:                      ulps * u * magnitude, ulps from kArithmeticUlps up
// A dot product over n numbers adds at most n * u * sum |a b|, a sum over N tokens N * u: the tests of an operator say
// which of these sums it has. Half a unit in the last place, relative to the number, by dtype:
//   float32   2^-24   24 significant bits
//   bfloat16  2^-8     8
//   float16   2^-11   11; below 2^-14 its numbers are subnormal, so that half of the smallest one, 2^-25, is allowed
//   too float64   2^-53   53
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>

#include <limits>

namespace satformer::tests {

// Half a unit in the last place, relative.
inline double rounding(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBFloat16:
      return 0x1p-8;
    case at::kHalf:
      return 0x1p-11;
    case at::kDouble:
      return 0x1p-53;
    default:
      return 0x1p-24;
  }
}

// u of the dtype that values of `dtype` are computed in.
inline double arithmetic_error(at::ScalarType dtype) { return rounding(at::toOpMathType(dtype)); }

inline constexpr double kArithmeticUlps = 16;

// The largest of |got - expected| / allowed, where allowed = rounding * |expected| + ulps * u * magnitude + tiny
// (the smallest normal number of the dtype). 0 for empty tensors. Not above 1 means within the tolerance. got may be on
// a GPU.
inline double worst_error(const at::Tensor& got, const at::Tensor& expected, const at::Tensor& magnitude,
                          at::ScalarType values_dtype, double ulps = kArithmeticUlps) {
  if (got.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (got.numel() == 0) return 0;
  const double tiny = got.scalar_type() == at::kHalf ? 0x1p-25 : 0x1p-126;
  const at::Tensor allowed =
      rounding(got.scalar_type()) * expected.abs() + ulps * arithmetic_error(values_dtype) * magnitude + tiny;
  const double worst = ((got.cpu().to(at::kDouble) - expected).abs() / allowed).max().item<double>();
  return worst == worst ? worst : std::numeric_limits<double>::infinity();
}

}  // namespace satformer::tests
