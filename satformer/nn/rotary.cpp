#include "satformer/nn/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/pow.h>

#include "satformer/core/error.h"

namespace satformer::nn {
RotaryTables make_rotary_tables(const at::Tensor& positions, std::int64_t head_dim, double theta,
                                at::ScalarType dtype) {
  require(head_dim % 2 == 0, "rotary: head_dim must be even, got {}", head_dim);
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, positions.options().dtype(at::kDouble)).div_(static_cast<double>(head_dim));
  const at::Tensor frequencies = at::pow(theta, exponents).reciprocal_();
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(-1).unsqueeze(-1) * frequencies;
  return {angles.cos().to(dtype), angles.sin().to(dtype)};
}

}  // namespace satformer::nn
