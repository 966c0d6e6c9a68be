#include "satformer/core/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace satformer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTerminalInterval = 0.1;  // seconds between two lines
constexpr double kPlainInterval = 10.0;
constexpr std::string_view kClearLine = "\r\x1b[K";

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

// One call for a whole line, so that processes do not mix theirs.
void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// A progress line that stands on the terminal gives way; its next update draws it again.
void print_note(std::string_view kind, std::string_view text) {
  print(fmt::format("{}satformer: {}{}\n", is_terminal() ? kClearLine : "", kind, text));
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// A line longer than the terminal would wrap, and then be no more rewritten in place.
std::string_view fit_terminal(std::string_view line) {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return line;
  return line.substr(0, size.ws_col - 1U);
}

}  // namespace

void note(std::string_view text) { print_note("", text); }

void warn(std::string_view text) { print_note("warning: ", text); }

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e15) return "?";
  const auto total = std::llround(std::fmax(seconds, 0.0));
  const auto days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60;
  if (days > 0) return fmt::format("{}d{:02}h", days, hours);
  if (hours > 0) return fmt::format("{}h{:02}m", hours, minutes);
  if (minutes > 0) return fmt::format("{}m{:02}s", minutes, total % 60);
  return fmt::format("{}s", total);
}

std::string format_count(double count) {
  if (!std::isfinite(count)) return "?";
  constexpr std::array<const char*, 5> kSuffixes{"", "k", "M", "B", "T"};
  std::size_t scale = 0;
  double value = count;
  // 999.5 would be shown as 1000.
  while (std::fabs(value) >= 999.5 && scale + 1 < kSuffixes.size()) {
    value /= 1000;
    ++scale;
  }
  if (scale == 0 && value == std::round(value)) return fmt::format("{:.0f}", value);
  const double size = std::fabs(value);
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, kSuffixes.at(scale));
}

std::string format_progress(const ProgressState& state) {
  std::string text = fmt::format("{}: {}", state.label, format_count(static_cast<double>(state.done)));
  const auto total = static_cast<double>(state.total);
  if (state.total > 0) text += fmt::format("/{}", format_count(total));
  text += fmt::format(" {}", state.unit);
  if (state.total > 0) text += fmt::format(" ({:.0f}%)", std::floor(100 * static_cast<double>(state.done) / total));
  const auto worked = static_cast<double>(state.done - state.start);
  if (worked > 0 && state.seconds > 0) {
    const double rate = worked / state.seconds;
    text += fmt::format(", {} {}/s", format_count(rate), state.unit);
    if (state.done < state.total) {
      text += fmt::format(", {} left", format_duration(static_cast<double>(state.total - state.done) / rate));
    }
  }
  if (!state.extra.empty()) text += fmt::format(", {}", state.extra);
  return text;
}

Progress::Progress(std::string label, std::string unit, std::int64_t total, std::int64_t start)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      start_(start),
      terminal_(is_terminal()),
      begin_(Clock::now()),
      last_(begin_) {}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // a line of progress is not worth the process
  }
}

void Progress::update(std::int64_t done, std::string_view extra) {
  const Clock::time_point now = Clock::now();
  const double since = seconds_between(last_, now);
  // On a terminal the first line comes at once.
  if (terminal_ ? open_ && since < kTerminalInterval : since < kPlainInterval) return;
  last_ = now;
  const std::string text = format_progress({.label = label_,
                                            .unit = unit_,
                                            .done = done,
                                            .start = start_,
                                            .total = total_,
                                            .seconds = seconds(),
                                            .extra = extra});
  if (terminal_) {
    print(fmt::format("{}{}", kClearLine, fit_terminal(text)));
    open_ = true;
  } else {
    print(text + "\n");
  }
}

void Progress::finish(std::string_view last) {
  if (open_) print(kClearLine);
  open_ = false;
  if (!last.empty()) print(fmt::format("{}: {}\n", label_, last));
}

double Progress::seconds() const { return seconds_between(begin_, Clock::now()); }

}  // namespace satformer
