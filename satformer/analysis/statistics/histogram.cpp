#include "satformer/analysis/statistics/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace satformer::analysis {
namespace {

constexpr std::uint32_t kDroppedBits = 16;               // of a float's 32
constexpr std::uint32_t kFirstKey = (127 - 20) << 7;     // 2^-20
constexpr std::uint32_t kLastKey = (127 + 12) << 7;      // 2^12
constexpr std::size_t kBins = kLastKey - kFirstKey + 2;  // [0, 2^-20) before them, [2^12, infinity) after them

void add_bins(std::vector<std::int64_t>& sum, const std::vector<std::int64_t>& other) {
  if (sum.empty()) sum.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) sum[i] += other[i];
}

}  // namespace

std::size_t ValueHistogram::bin_of(float magnitude) {
  const std::uint32_t key = std::bit_cast<std::uint32_t>(magnitude) >> kDroppedBits;
  if (key < kFirstKey) return 0;
  return std::min<std::size_t>(key - kFirstKey + 1, kBins - 1);
}

double ValueHistogram::lower_edge(std::size_t bin) {
  if (bin == 0) return 0.0;
  const auto key = static_cast<std::uint32_t>(bin - 1) + kFirstKey;
  return static_cast<double>(std::bit_cast<float>(key << kDroppedBits));
}

double ValueHistogram::middle(std::size_t bin) const {
  if (bin == kBins - 1) return lower_edge(bin);
  return (lower_edge(bin) + lower_edge(bin + 1)) / 2;
}

void ValueHistogram::add(float value) {
  ++count_;
  min_ = std::min(min_, static_cast<double>(value));
  max_ = std::max(max_, static_cast<double>(value));
  if (value == 0.0f) {
    ++zeros_;
    return;
  }
  Bins& bins = value > 0.0f ? positive_ : negative_;
  if (bins.empty()) bins.resize(kBins);
  ++bins[bin_of(std::abs(value))];
}

void ValueHistogram::merge(const ValueHistogram& other) {
  count_ += other.count_;
  zeros_ += other.zeros_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  if (!other.positive_.empty()) add_bins(positive_, other.positive_);
  if (!other.negative_.empty()) add_bins(negative_, other.negative_);
}

double ValueHistogram::quantile(double q) const {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  const double wanted = std::ceil(q * static_cast<double>(count_));
  const std::int64_t rank = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, count_);
  std::int64_t seen = 0;
  for (std::size_t i = negative_.size(); i-- > 0;) {
    seen += negative_[i];
    if (seen >= rank) return std::clamp(-middle(i), min_, max_);
  }
  seen += zeros_;
  if (seen >= rank) return 0.0;
  for (std::size_t i = 0; i < positive_.size(); ++i) {
    seen += positive_[i];
    if (seen >= rank) return std::clamp(middle(i), min_, max_);
  }
  return max_;
}

std::vector<std::int64_t> ValueHistogram::counts_between(std::span<const double> edges) const {
  std::vector<std::int64_t> counts(edges.size() + 1);
  for (std::size_t i = 0; i < negative_.size(); ++i) {  // holds -lower_edge(i), which is its upper edge
    const auto at = std::lower_bound(edges.begin(), edges.end(), -lower_edge(i));
    counts[static_cast<std::size_t>(at - edges.begin())] += negative_[i];
  }
  for (std::size_t i = 0; i < positive_.size(); ++i) {
    const auto at = std::upper_bound(edges.begin(), edges.end(), lower_edge(i));
    counts[static_cast<std::size_t>(at - edges.begin())] += positive_[i];
  }
  return counts;
}

double ValueHistogram::edge_below(double value) {
  return std::copysign(lower_edge(bin_of(static_cast<float>(std::abs(value)))), value);
}

std::vector<double> display_edges(double low, double high, std::int64_t bins) {
  std::vector<double> edges;
  const double width = (high - low) / static_cast<double>(bins);
  const auto below = static_cast<std::int64_t>(std::round(-low / width));
  for (std::int64_t i = -below; i <= bins - below; ++i) {
    const double edge = ValueHistogram::edge_below(static_cast<double>(i) * width);
    if (edges.empty() || edge > edges.back()) edges.push_back(edge);
  }
  return edges;
}

}  // namespace satformer::analysis
