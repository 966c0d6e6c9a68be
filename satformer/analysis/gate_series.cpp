#include "satformer/analysis/gate_series.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

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

void GateSeries::add(float alpha, float contribution) {
  const double value = alpha, magnitude = std::abs(value);
  values_.add(value);
  magnitudes_.add(magnitude);
  histogram_.add(alpha);
  for (std::size_t i = below_.size(); i-- > 0 && magnitude < settings_.thresholds[i];) ++below_[i];
  if (magnitude > settings_.open_above) open_.add(value);
  if (!std::isfinite(contribution)) return;
  contribution_.add(contribution);
  first_share_.add(contribution / (1.0 + contribution));
}

void GateSeries::merge(const GateSeries& other) {
  values_.merge(other.values_);
  magnitudes_.merge(other.magnitudes_);
  open_.merge(other.open_);
  contribution_.merge(other.contribution_);
  first_share_.merge(other.first_share_);
  for (std::size_t i = 0; i < below_.size(); ++i) below_[i] += other.below_[i];
  histogram_.merge(other.histogram_);
}

std::vector<double> GateSeries::below_shares() const {
  std::vector<double> shares;
  for (const std::int64_t count : below_) shares.push_back(share(count));
  return shares;
}

double GateSeries::share(std::int64_t part) const {
  return count() > 0 ? static_cast<double>(part) / static_cast<double>(count()) : kNone;
}

double gini(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum <= 0.0) return 0.0;
  const auto n = static_cast<double>(values.size());
  double weighted = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) weighted += (2.0 * static_cast<double>(i + 1) - n - 1.0) * values[i];
  return weighted / (n * sum);
}

double top_share(std::vector<double> values, std::int64_t count) {
  std::sort(values.begin(), values.end(), std::greater<>());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum <= 0.0) return 0.0;
  const auto taken = std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(values.size()));
  return std::accumulate(values.begin(), values.begin() + taken, 0.0) / sum;
}

}  // namespace satformer::analysis
