#include "tests/apps/child_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "satformer/io/files.h"
#include "tests/paths.h"

namespace satformer::testing {
namespace {

void redirect(const std::filesystem::path& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
}

}  // namespace

Command::Command(CommandLine line) : folder_(std::move(line.folder)) {
  std::string program = line.program.string();
  std::vector<char*> argv{program.data()};
  for (std::string& argument : line.arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  redirect(folder_ / "stdout.txt", STDOUT_FILENO);
  redirect(folder_ / "stderr.txt", STDERR_FILENO);
  for (std::string& assignment : line.environment) putenv(assignment.data());
  execv(argv[0], argv.data());
  _exit(127);
}

Command::Command(std::vector<std::string> arguments, std::filesystem::path folder)
    : Command(CommandLine{cli(), std::move(arguments), std::move(folder)}) {}

Command::~Command() {
  if (!running()) return;
  send(SIGKILL);
  waitpid(pid_, &status_, 0);
}

void Command::send(int signal) const {
  if (!ended_) kill(pid_, signal);
}

bool Command::running() {
  if (!ended_) ended_ = wait4(pid_, &status_, WNOHANG, &usage_) == pid_;
  return !ended_;
}

CommandResult Command::wait() {
  if (!ended_) wait4(pid_, &status_, 0, &usage_);
  ended_ = true;
  CommandResult result;
  result.peak_memory_kib = usage_.ru_maxrss;
  if (WIFEXITED(status_)) result.exit_code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) result.signal = WTERMSIG(status_);
  result.out = read_file(folder_ / "stdout.txt");
  result.err = read_file(folder_ / "stderr.txt");
  return result;
}

CommandResult run_command(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  return Command(arguments, folder).wait();
}

}  // namespace satformer::testing
