#include "satformer/bench/worker_process.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"

namespace satformer::bench {
namespace {

struct SocketPair {
  FileDescriptor parent, child;
};

SocketPair make_socket_pair(const std::string& name) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail_system("make a socket for", name, errno);
  }
  return {FileDescriptor(ends[0], name), FileDescriptor(ends[1], name)};
}

// posix_spawn and not fork: this process may have threads.
pid_t spawn(std::vector<std::string> command, std::vector<std::string> variables, int socket, int errors,
            const std::string& name) {
  std::vector<char*> arguments, environment;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  for (std::string& variable : variables) environment.push_back(variable.data());  // the first of a name counts
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  pid_t pid = -1;
  const int code = ::posix_spawn(&pid, arguments.front(), &actions, nullptr, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) fail_system("start the process of", name, code);
  return pid;
}

std::string last_line(const FileDescriptor& file) {
  std::string text(static_cast<std::size_t>(file.status().st_size), '\0');
  ::lseek(file.get(), 0, SEEK_SET);
  text.resize(file.read(std::as_writable_bytes(std::span(text))));
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command, std::string name,
                             const std::vector<std::string>& variables)
    : name_(std::move(name)), socket_(-1, name_), errors_(::memfd_create("errors", MFD_CLOEXEC), name_) {
  if (errors_.get() < 0) fail_system("keep the messages of", name_, errno);
  SocketPair pair = make_socket_pair(name_);
  socket_ = std::move(pair.parent);
  pid_ = spawn(command, variables, pair.child.get(), errors_.get(), name_);
}

WorkerProcess::~WorkerProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);  // it holds nothing that would need care
  retry_interrupted([&] { return ::waitpid(pid_, nullptr, 0); });
}

nlohmann::json WorkerProcess::ask(const nlohmann::json& request) {
  send(request);
  return reply();
}

void WorkerProcess::send(const nlohmann::json& request) const { send_line(request.dump() + "\n"); }

nlohmann::json WorkerProcess::reply() {
  const std::string line = read_line();
  nlohmann::json reply = parse_strict_json(line, fmt::format("the reply of {}", name_));
  require(!reply.contains("error"), "{}: {}", name_, reply.value("error", ""));
  return reply;
}

void WorkerProcess::send_line(const std::string& line) const {
  for (std::size_t sent = 0; sent < line.size();) {
    // Not write(): a process that has ended must be an error here, not a SIGPIPE.
    const ssize_t count =
        retry_interrupted([&] { return ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL); });
    if (count < 0) return;  // the reply's end of file will tell
    sent += static_cast<std::size_t>(count);
  }
}

std::string WorkerProcess::read_line() {
  std::size_t end = received_.find('\n');
  while (end == received_.npos) {
    std::array<char, 4096> buffer{};
    const ssize_t count = retry_interrupted([&] { return ::read(socket_.get(), buffer.data(), buffer.size()); });
    if (count <= 0) fail_ended();
    received_.append(buffer.data(), static_cast<std::size_t>(count));
    end = received_.find('\n');
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

void WorkerProcess::fail_ended() {
  int status = 0;
  retry_interrupted([&] { return ::waitpid(pid_, &status, 0); });
  pid_ = -1;
  const std::string how = WIFSIGNALED(status) ? fmt::format("by signal {}{}", WTERMSIG(status),
                                                            WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "")
                                              : fmt::format("with exit code {}", WEXITSTATUS(status));
  const std::string words = last_line(errors_);
  fail("{}: its process ended {}{}{}", name_, how, words.empty() ? "" : ": ", words);
}

}  // namespace satformer::bench
