#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>

#include "apps/commands.h"
#include "apps/options.h"
#include "satformer/core/first_line.h"
#include "satformer/io/files.h"

namespace satformer::apps {
namespace {

// A signal handler has no object to write to; nothing else uses this.
volatile std::sig_atomic_t stop_requested = 0;

void on_stop_signal(int) {
  stop_requested = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

// Found out now, not after hours of work.
std::string check_writable_folder(const std::string& path) {
  if (std::filesystem::is_directory(path)) return "is a folder, expected a file: " + path;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() || std::filesystem::is_directory(parent) ? "" : "no such folder: " + parent.string();
}

}  // namespace

void add_json_option(CLI::App& command, std::string& path) {
  command.add_option("--json", path, "Write the results to this file, for machines")
      ->type_name("FILE")
      ->check(check_writable_folder, "", "");
}

void write_json_result(const std::string& path, const nlohmann::json& result) {
  if (!path.empty()) write_file_atomically(path, result.dump(2) + "\n");
}

CLI::Option* add_threads_option(CLI::App& command) {
  return command
      .add_option_function<int>(
          "--threads", [](const int& threads) { at::set_num_threads(threads); }, "CPU threads")
      ->check(CLI::Range(1, 4096));
}

std::string error_message(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::filesystem::filesystem_error& error) {
    return fmt::format("{}: {}", error.path1().string(), error.code().message());
  } catch (const std::system_error& error) {
    // Only threads report this: a thread's stack counts towards the limit of memory.
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    return fmt::format("{}{}", thread ? "cannot start another thread, give fewer --threads or raise the limits: " : "",
                       first_line(error.what()));
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const c10::Error& error) {
    return first_line(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return first_line(error.what());
  } catch (...) {
    return "unknown exception";
  }
}

StopSignal::StopSignal() {
  stop_requested = 0;
  std::signal(SIGINT, on_stop_signal);
  std::signal(SIGTERM, on_stop_signal);
}

StopSignal::~StopSignal() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool StopSignal::requested() const { return stop_requested != 0; }

}  // namespace satformer::apps
