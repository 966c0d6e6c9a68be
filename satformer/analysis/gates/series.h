#pragma once
// The numbers of one series of gate values: a head's, a layer's or the whole model's.
#include <cstdint>
#include <utility>
#include <vector>

#include "satformer/analysis/statistics/histogram.h"
#include "satformer/analysis/statistics/moments.h"

namespace satformer::analysis {

struct GateSettings {
  std::vector<double> thresholds{0.01, 0.1, 0.5};  // ascending
  double open_above = 0.0;                         // a gate is open when |alpha| > open_above
};

// Of gates alpha and contributions |alpha v1| / |v|.
class GateSeries {
 public:
  explicit GateSeries(GateSettings settings) : settings_(std::move(settings)), below_(settings_.thresholds.size()) {}
  // A contribution that is not finite (v = 0) is left out of the contributions. Alpha must be finite.
  void add(float alpha, float contribution);
  void merge(const GateSeries& other);

  std::int64_t count() const { return values_.count(); }
  double mean() const { return values_.mean(); }
  double standard_deviation() const { return values_.standard_deviation(); }
  double mean_magnitude() const { return magnitudes_.mean(); }
  double zero_fraction() const { return share(histogram_.zeros()); }
  std::vector<double> below_shares() const;  // of |alpha| < each threshold
  double open_share() const { return share(open_.count()); }
  double mean_while_open() const { return open_.mean(); }  // NaN when never open
  double quantile(double q) const { return histogram_.quantile(q); }
  const ValueHistogram& histogram() const { return histogram_; }
  const Moments& contribution() const { return contribution_; }
  // |alpha v1| / (|alpha v1| + |v|), from 0 (v alone) to 1 (v1 alone).
  const Moments& first_share() const { return first_share_; }

 private:
  double share(std::int64_t part) const;

  GateSettings settings_;
  Moments values_, magnitudes_, open_, contribution_, first_share_;
  std::vector<std::int64_t> below_;
  ValueHistogram histogram_;
};

}  // namespace satformer::analysis
