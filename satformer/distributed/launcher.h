#pragma once
// Starts the ranks of this machine: processes of one program, with the variables that torchrun would set.
#include <string>
#include <vector>

namespace satformer::distributed {

// Environment variable: the process whose end is a rank's end, too.
constexpr const char* kLauncherVariable = "SATFORMER_LAUNCHER";

struct LaunchSettings {
  std::vector<std::string> command;  // a program's path and its arguments
  int ranks = 0;
  int threads = 0;  // OMP_NUM_THREADS of each; 0: as it is
};

// Starts the ranks, passes SIGINT and SIGTERM on to them and waits until all have ended. When one fails, the others are
// told and, if they do not end by themselves in seconds, ended; Error names the one that failed first and how. However
// this process ends, no rank outlives it.
void launch(const LaunchSettings& settings);

// To be called first by a program that may be a rank of launch(): it then ends with its launcher.
void follow_launcher();

}  // namespace satformer::distributed
