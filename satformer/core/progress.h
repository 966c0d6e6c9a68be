#pragma once
// Notes and progress on standard error; standard output is for results.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace satformer {

// One line on standard error, `satformer: TEXT`. `warn` puts "warning: " before it.
void note(std::string_view text);
void warn(std::string_view text);

// "2d03h", "1h02m", "3m20s", "12s"; "?" for what is not finite.
std::string format_duration(double seconds);
// Three significant digits: "12.3k", "4.56M", "1.30B"; whole numbers below 1000 as they are.
std::string format_count(double count);

struct ProgressState {
  std::string_view label, unit;
  std::int64_t done = 0;
  std::int64_t start = 0;  // done before the clock started: a resumed run's steps
  std::int64_t total = 0;  // 0: unknown
  double seconds = 0;      // since the clock started
  std::string_view extra;
};

// "prepare: 1.20M/4.40M tokens (27%), 310k tokens/s, 10s left, EXTRA"; what is not known is left out.
std::string format_progress(const ProgressState& state);

// Long work's progress: a line that is rewritten on a terminal, a plain line every ten seconds elsewhere.
//   Progress progress("prepare", "tokens", total);    total 0: unknown
//   progress.update(done, "extra text");
//   progress.finish("last words");
class Progress {
 public:
  // `start`: what was done before, so that it counts for the share but not for the rate.
  Progress(std::string label, std::string unit, std::int64_t total, std::int64_t start = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done, std::string_view extra = {});
  // Clears the line on a terminal; what is given stands in its place, as "LABEL: LAST".
  void finish(std::string_view last = {});
  double seconds() const;

 private:
  std::string label_, unit_;
  std::int64_t total_, start_;
  bool terminal_;
  bool open_ = false;  // a line stands on the terminal
  std::chrono::steady_clock::time_point begin_, last_;
};

}  // namespace satformer
