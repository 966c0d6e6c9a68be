#pragma once
// The loss of many tokens as numbers, and what is told of it. (models::LossSum is one pass's, still a tensor.)
#include <cmath>
#include <cstdint>
#include <numbers>

namespace satformer::eval {

// exp(mean loss in nats).
inline double perplexity(double loss) { return std::exp(loss); }

struct LossTotal {
  double loss_sum = 0.0;  // nats
  std::int64_t num_targets = 0;

  double mean() const { return loss_sum / static_cast<double>(num_targets); }
  double perplexity() const { return eval::perplexity(mean()); }
  // loss_sum / ln 2 / bytes of the targets' text.
  double bits_per_byte(std::int64_t bytes) const { return loss_sum / std::numbers::ln2 / static_cast<double>(bytes); }
};

}  // namespace satformer::eval
