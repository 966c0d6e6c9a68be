#include "satformer/nn/cross_entropy.h"

#include <fmt/ranges.h>

#include "csrc/ops/linear_cross_entropy.h"
#include "csrc/ops/linear_cross_entropy_reference.h"
#include "satformer/core/error.h"

namespace satformer::nn {

at::Tensor linear_cross_entropy_sum(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                    bool fused) {
  require(targets.scalar_type() == at::kLong, "cross_entropy: targets must be int64, got {}",
          toString(targets.scalar_type()));
  require(hidden.dim() >= 1 && targets.sizes() == hidden.sizes().slice(0, hidden.dim() - 1),
          "cross_entropy: targets must have the shape of hidden [{}] without the last dimension, got [{}]",
          fmt::join(hidden.sizes(), ", "), fmt::join(targets.sizes(), ", "));
  const at::Tensor rows = hidden.reshape({-1, hidden.size(-1)});
  const at::Tensor row_targets = targets.reshape(-1);
  return fused ? ops::linear_cross_entropy(rows, weight, row_targets, kIgnoreIndex)
               : ops::linear_cross_entropy_reference(rows, weight, row_targets, kIgnoreIndex, /*scale=*/1);
}

}  // namespace satformer::nn
