#include "satformer/analysis/statistics/moments.h"

#include <cmath>
#include <limits>

namespace satformer::analysis {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void Moments::merge(const Moments& other) {
  if (other.count_ == 0) return;
  const auto n = static_cast<double>(count_), m = static_cast<double>(other.count_);
  const double difference = other.mean_ - mean_;
  mean_ += difference * m / (n + m);
  squares_ += other.squares_ + difference * difference * n * m / (n + m);
  count_ += other.count_;
}

double Moments::mean() const { return count_ > 0 ? mean_ : kNone; }

double Moments::standard_deviation() const {
  return count_ > 0 ? std::sqrt(squares_ / static_cast<double>(count_)) : kNone;
}

}  // namespace satformer::analysis
