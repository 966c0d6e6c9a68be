#pragma once
// Runs the built executable as a child process.
#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace satformer::testing {

struct CommandResult {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  long peak_memory_kib = 0;  // resident
  std::string out, err;
};

// What a process is started with. Standard output and error go to files of `folder`.
struct CommandLine {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::filesystem::path folder;
  std::vector<std::string> environment = {};  // "NAME=VALUE", beside this process's own
};

class Command {
 public:
  explicit Command(CommandLine line);
  // satformer ARGUMENTS...
  Command(std::vector<std::string> arguments, std::filesystem::path folder);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  void send(int signal) const;
  pid_t pid() const { return pid_; }
  bool running();
  CommandResult wait();

 private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
  int status_ = 0;
  rusage usage_{};
  bool ended_ = false;
};

CommandResult run_command(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

}  // namespace satformer::testing
