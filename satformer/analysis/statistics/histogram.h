#pragma once
// A histogram of float values in one pass and bounded memory, fine enough for quantiles: bins are the numbers with the
// same leading eight significant bits (the cells of bfloat16), so that a bin's width is at most 2^-7 of its value.
//   magnitudes in [2^-20, 2^12): 4096 bins a sign; smaller ones share a bin, larger ones too; zero has its own.
// A bin holds its edge that is nearer to zero: [a, b) for positive values, (b, a] for negative ones.
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace satformer::analysis {

class ValueHistogram {
 public:
  // The value must be finite.
  void add(float value);
  void merge(const ValueHistogram& other);

  std::int64_t count() const { return count_; }
  std::int64_t zeros() const { return zeros_; }
  double min() const { return min_; }  // +infinity and -infinity without values
  double max() const { return max_; }

  // The smallest value that at least a share q of the values does not exceed, as the middle of its bin: within 2^-8 of
  // it for magnitudes in [2^-20, 2^12). NaN without values.
  double quantile(double q) const;

  // For ascending edges that are edges of bins (see edge_below): how many values other than zero lie before the first
  // edge, between each two, and after the last one: edges.size() + 1 numbers.
  std::vector<std::int64_t> counts_between(std::span<const double> edges) const;

  // The edge of a bin that is nearest to `value` on the side of zero.
  static double edge_below(double value);

 private:
  using Bins = std::vector<std::int64_t>;  // by magnitude; empty until one is needed
  static std::size_t bin_of(float magnitude);
  static double lower_edge(std::size_t bin);
  double middle(std::size_t bin) const;

  std::int64_t count_ = 0, zeros_ = 0;
  double min_ = std::numeric_limits<double>::infinity(), max_ = -std::numeric_limits<double>::infinity();
  Bins positive_, negative_;
};

// `bins` intervals of about equal width from `low` to `high`, whose edges are edges of ValueHistogram's bins; 0 is one
// of them when it lies between. low <= 0 <= high, low < high.
std::vector<double> display_edges(double low, double high, std::int64_t bins);

}  // namespace satformer::analysis
