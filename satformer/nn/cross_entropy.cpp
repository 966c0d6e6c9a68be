#include "satformer/nn/cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/ranges.h>

#include "satformer/core/error.h"
#include "satformer/nn/compute_dtype.h"

namespace satformer::nn {

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets) {
  require(targets.scalar_type() == at::kLong, "cross_entropy: targets must be int64, got {}",
          toString(targets.scalar_type()));
  require(logits.dim() >= 1 && targets.sizes() == logits.sizes().slice(0, logits.dim() - 1),
          "cross_entropy: targets must have the shape of logits [{}] without the last dimension, got [{}]",
          fmt::join(logits.sizes(), ", "), fmt::join(targets.sizes(), ", "));
  const at::Tensor rows = logits.reshape({-1, logits.size(-1)}).to(accumulate_dtype(logits));
  return at::cross_entropy_loss(rows, targets.reshape(-1), {}, at::Reduction::Sum, kIgnoreIndex);
}

}  // namespace satformer::nn
