#include "satformer/core/progress.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "satformer/io/files.h"
#include "tests/support/errors.h"
#include "tests/support/folders.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using testing::contains;
using testing::TemporaryFolder;

// Standard error goes to `descriptor` while it lives, TERM is `term`.
class RedirectedError {
 public:
  RedirectedError(int descriptor, const char* term) : saved_(::dup(STDERR_FILENO)) {
    if (const char* old = std::getenv("TERM")) term_ = old;
    ::setenv("TERM", term, 1);
    ::dup2(descriptor, STDERR_FILENO);
  }
  ~RedirectedError() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    if (term_.empty()) {
      ::unsetenv("TERM");
    } else {
      ::setenv("TERM", term_.c_str(), 1);
    }
  }
  RedirectedError(const RedirectedError&) = delete;
  RedirectedError& operator=(const RedirectedError&) = delete;

 private:
  int saved_;
  std::string term_;
};

// What `work` writes to a standard error that is a file.
template <typename Work>
std::string plain_output(Work&& work) {
  const TemporaryFolder folder;
  const int file = ::open((folder / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  {
    const RedirectedError redirected(file, "xterm");
    work();
  }
  ::close(file);
  return read_file(folder / "err");
}

// What `work` writes to a terminal of `columns`.
template <typename Work>
std::string terminal_output(unsigned short columns, const char* term, Work&& work) {
  int master = -1, terminal = -1;
  const winsize size{24, columns, 0, 0};
  REQUIRE(::openpty(&master, &terminal, nullptr, nullptr, &size) == 0);
  {
    const RedirectedError redirected(terminal, term);
    work();
  }
  // The kernel hands over what was written piece by piece; when the last writer is gone, the end is an error.
  ::close(terminal);
  std::string output;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::read(master, buffer.data(), buffer.size())) > 0;) {
    output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(master);
  return output;
}

TEST_CASE("durations are short", "[core][progress]") {
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(-3) == "0s");
  CHECK(format_duration(12.4) == "12s");
  CHECK(format_duration(59.6) == "1m00s");
  CHECK(format_duration(200) == "3m20s");
  CHECK(format_duration(3720) == "1h02m");
  CHECK(format_duration(183600) == "2d03h");
  CHECK(format_duration(std::nan("")) == "?");
  CHECK(format_duration(std::numeric_limits<double>::infinity()) == "?");
  CHECK(format_duration(1e300) == "?");
}

TEST_CASE("counts have three digits", "[core][progress]") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(7) == "7");
  CHECK(format_count(0.5) == "0.50");
  CHECK(format_count(3.456) == "3.46");
  CHECK(format_count(45.67) == "45.7");
  CHECK(format_count(999) == "999");
  CHECK(format_count(999.7) == "1.00k");
  CHECK(format_count(1000) == "1.00k");
  CHECK(format_count(12345) == "12.3k");
  CHECK(format_count(99'960) == "100k");
  CHECK(format_count(999'999) == "1.00M");
  CHECK(format_count(4'560'000) == "4.56M");
  CHECK(format_count(1.3e9) == "1.30B");
  CHECK(format_count(2e12) == "2.00T");
  CHECK(format_count(5e16) == "50000T");
  CHECK(format_count(-12345) == "-12.3k");
  CHECK(format_count(std::nan("")) == "?");
}

TEST_CASE("a progress line has share, rate and time left", "[core][progress]") {
  ProgressState state{
      .label = "prepare", .unit = "tokens", .done = 1'200'000, .total = 4'800'000, .seconds = 4, .extra = {}};
  CHECK(format_progress(state) == "prepare: 1.20M/4.80M tokens (25%), 300k tokens/s, 12s left");
  state.extra = "loss 5.1";
  state.start = 1'000'000;  // a resumed run: the rate counts what was done since
  CHECK(format_progress(state) == "prepare: 1.20M/4.80M tokens (25%), 50.0k tokens/s, 1m12s left, loss 5.1");
  state = {.label = "x", .unit = "steps", .done = 10, .total = 0, .seconds = 5, .extra = {}};
  CHECK(format_progress(state) == "x: 10 steps, 2 steps/s");
  state.done = 0;
  CHECK(format_progress(state) == "x: 0 steps");
  state = {.label = "x", .unit = "steps", .done = 10, .total = 10, .seconds = 0, .extra = {}};
  CHECK(format_progress(state) == "x: 10/10 steps (100%)");
  state = {.label = "x", .unit = "steps", .done = 999, .total = 1000, .seconds = 1, .extra = {}};
  CHECK(contains(format_progress(state), "(99%)"));  // never 100 before the end
}

TEST_CASE("notes are one line on standard error", "[core][progress]") {
  const std::string output = plain_output([] {
    note("text");
    warn("careful");
  });
  CHECK(output == "satformer: text\nsatformer: warning: careful\n");
}

TEST_CASE("without a terminal only slow work shows lines", "[core][progress]") {
  const std::string output = plain_output([] {
    Progress progress("train", "steps", 10);
    for (int i = 0; i <= 10; ++i) progress.update(i);
    progress.finish("done");
    Progress silent("train", "steps", 10);
    silent.update(3);
  });
  CHECK(output == "train: done\n");
}

TEST_CASE("on a terminal one line is rewritten and cleared", "[core][progress]") {
  const auto work = [] {
    Progress progress("train", "steps", 10);
    progress.update(1, "loss 7.6");
    progress.update(2);  // too soon after the first
    progress.finish();
  };
  const std::string output = terminal_output(200, "xterm", work);
  CHECK(output.starts_with("\r\x1b[Ktrain: 1/10 steps (10%), "));
  CHECK(contains(output, "loss 7.6"));
  CHECK(!contains(output, "2/10"));
  CHECK(output.ends_with("loss 7.6\r\x1b[K"));
  CHECK(terminal_output(20, "xterm", work) == "\r\x1b[Ktrain: 1/10 steps (\r\x1b[K");
  CHECK(terminal_output(80, "dumb", work).empty());
  CHECK(terminal_output(80, "xterm", [] { note("text"); }) == "\r\x1b[Ksatformer: text\r\n");
}

}  // namespace
}  // namespace satformer
