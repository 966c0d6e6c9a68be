#pragma once
// Training's progress on standard error: on a terminal one line that is rewritten, elsewhere a line every
// log_interval steps.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "satformer/train/metrics.h"

namespace satformer::train {

class Display {
 public:
  Display(std::int64_t first_step, std::int64_t max_steps, std::int64_t log_interval);
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  void show(const StepMetrics& metrics);
  void show(const ValidationMetrics& metrics);
  // A line that stays.
  void say(std::string_view text);

  // "step 120/1000 | loss 4.1234 | lr 3.00e-04 | grad 0.52 | 12.3k tokens/s | 3m20s left"
  std::string line(const StepMetrics& metrics) const;

 private:
  void rewrite(const std::string& text);
  void clear();

  std::int64_t first_step_, max_steps_, log_interval_;
  bool terminal_;
  bool open_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace satformer::train
