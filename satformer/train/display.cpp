#include "satformer/train/display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "satformer/core/clock.h"
#include "satformer/core/progress.h"

namespace satformer::train {
namespace {

constexpr auto kRewriteInterval = std::chrono::milliseconds(100);

}  // namespace

Display::Display(std::int64_t first_step, std::int64_t max_steps, std::int64_t log_interval)
    : first_step_(first_step),
      max_steps_(max_steps),
      log_interval_(log_interval),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_(start_ - kRewriteInterval) {}

Display::~Display() { clear(); }

void Display::show(const StepMetrics& metrics) {
  const bool due = metrics.step % log_interval_ == 0 || metrics.step == max_steps_ || metrics.skipped;
  if (!terminal_) {
    if (due) note(line(metrics));
  } else if (due || Clock::now() - last_ >= kRewriteInterval) {
    rewrite(line(metrics));
  }
}

void Display::show(const ValidationMetrics& metrics) {
  say(fmt::format("step {}: validation loss {:.4f}, perplexity {:.2f} over {} tokens", metrics.step, metrics.loss,
                  metrics.perplexity(), metrics.tokens));
}

void Display::say(std::string_view text) {
  clear();
  note(text);
}

std::string Display::line(const StepMetrics& metrics) const {
  const std::string loss = metrics.skipped ? "skipped: loss or gradient is not finite"
                                           : fmt::format("loss {:.4f} | grad {:.2f}", metrics.loss, metrics.grad_norm);
  // Validations and checkpoints are in the time per step, so that what is left includes them.
  const double per_step =
      seconds_since(start_) / static_cast<double>(std::max<std::int64_t>(1, metrics.step - first_step_));
  return fmt::format("step {}/{} | {} | lr {:.2e} | {} tokens/s | {} left", metrics.step, max_steps_, loss,
                     metrics.learning_rate, format_count(metrics.tokens_per_second),
                     format_duration(per_step * static_cast<double>(max_steps_ - metrics.step)));
}

void Display::rewrite(const std::string& text) {
  std::fputs(fmt::format("\r\x1b[K{}", text).c_str(), stderr);
  std::fflush(stderr);
  open_ = true;
  last_ = Clock::now();
}

void Display::clear() {
  if (!open_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  open_ = false;
}

}  // namespace satformer::train
