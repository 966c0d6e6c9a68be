#pragma once
// Confidence intervals by a block bootstrap. The data are cut into blocks of consecutive windows (tokens of one text
// are not independent of each other); a resample draws as many blocks with replacement. A statistic is a function of
// sums over blocks, so it is enough to keep those: memory does not grow with the data.
// Intervals are percentile intervals (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13).
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace satformer::analysis {

struct BootstrapOptions {
  std::int64_t max_blocks = 256;  // at most so many; a block is at least one window
  std::int64_t resamples = 1000;
  double confidence = 0.95;
  std::uint64_t seed = 0;
};

// How many windows make a block of `windows`, so that there are at most max_blocks.
std::int64_t windows_per_block(std::int64_t windows, std::int64_t max_blocks);

struct Interval {
  double low = 0.0, high = 0.0;
};

// A statistic of all blocks, and its interval where there is one.
struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: there is no such token
  std::optional<Interval> interval = {};
};

class BlockBootstrap {
 public:
  // The same seed and number of blocks give the same resamples.
  BlockBootstrap(std::int64_t num_blocks, const BootstrapOptions& options);

  // The sum over blocks in each resample.
  std::vector<double> resample(std::span<const double> block_sums) const;
  // Between which values the statistic lies in the middle `confidence` of the resamples; resamples where it is not
  // finite (nothing of its kind was drawn) do not count. Nothing when there are fewer than two blocks or more than half
  // of the resamples do not count.
  std::optional<Interval> interval(std::vector<double> statistics) const;

  std::int64_t num_blocks() const { return num_blocks_; }

 private:
  std::int64_t num_blocks_, resamples_;
  double confidence_;
  std::vector<float> times_;  // [block][resample]: how often the block was drawn
};

}  // namespace satformer::analysis
