#pragma once
// What several commands share besides commands.h.
#include <CLI/CLI.hpp>
#include <exception>
#include <optional>
#include <string>

namespace satformer::apps {

// --threads N: CPU threads of LibTorch's operators; takes effect as soon as flags are parsed.
CLI::Option* add_threads_option(CLI::App& command);

// What a command prints for an exception, in one line.
std::string error_message(const std::exception_ptr& exception);

// SIGINT and SIGTERM as a question. The first signal is remembered while the object lives; a second one ends the
// process at once. One object at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
};

}  // namespace satformer::apps
