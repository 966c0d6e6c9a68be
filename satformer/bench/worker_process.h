#pragma once
// The parent's end of the protocol of bench/worker.h.
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/io/file_descriptor.h"

namespace satformer::bench {

class WorkerProcess {
 public:
  // Starts `command` (a program's path and its arguments); `name` is what errors call it. `variables` ("NAME=VALUE")
  // are added to this process's environment.
  WorkerProcess(const std::vector<std::string>& command, std::string name,
                const std::vector<std::string>& variables = {});
  // Ends the process if it has not ended.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Sends a request and waits for its reply. Error with the process's own text, or how it ended.
  nlohmann::json ask(const nlohmann::json& request);
  // The next line of its output, for programs that speak no protocol. Error when it ends without one.
  std::string read_line();
  // The same in two parts, for processes that need one another to answer.
  void send(const nlohmann::json& request) const;
  nlohmann::json reply();

  const std::string& name() const { return name_; }

 private:
  void send_line(const std::string& line) const;
  [[noreturn]] void fail_ended();

  std::string name_;
  FileDescriptor socket_;  // the process's standard input and output
  FileDescriptor errors_;  // its standard error, a file in memory
  std::string received_;   // the start of the next line
  pid_t pid_ = -1;         // -1: ended and waited for
};

}  // namespace satformer::bench
