#include "satformer/analysis/gates/series.h"

#include <cmath>
#include <limits>

namespace satformer::analysis {

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
  return count() > 0 ? static_cast<double>(part) / static_cast<double>(count())
                     : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace satformer::analysis
