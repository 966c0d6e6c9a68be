#pragma once
// Errors of the library. A message is one line: the file, key, tensor or argument, what was expected, what came,
// and what to do. Commands print it as `satformer: error: MESSAGE` and exit 1.
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace satformer {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// Throws Error when the condition does not hold.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(format, std::forward<Args>(args)...);
}

}  // namespace satformer
