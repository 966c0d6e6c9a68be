#pragma once
// Mean and standard deviation of numbers that are seen once.
#include <cstdint>

namespace satformer::analysis {

// Mean and variance in one pass (Welford), merged by Chan's formula. Float64.
class Moments {
 public:
  Moments() = default;
  // Of `count` values with this mean and this sum of squared differences from it.
  Moments(std::int64_t count, double mean, double squares) : count_(count), mean_(mean), squares_(squares) {}

  void add(double value) {
    ++count_;
    const double difference = value - mean_;
    mean_ += difference / static_cast<double>(count_);
    squares_ += difference * (value - mean_);
  }
  void merge(const Moments& other);

  std::int64_t count() const { return count_; }
  double mean() const;                // NaN without values
  double standard_deviation() const;  // of the population; NaN without values

 private:
  std::int64_t count_ = 0;
  double mean_ = 0.0, squares_ = 0.0;
};

}  // namespace satformer::analysis
