#include "satformer/distributed/launcher.h"

#include <signal.h>  // sigtimedwait, kill; NOLINT(modernize-deprecated-headers): <csignal> does not promise them
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "satformer/core/clock.h"
#include "satformer/core/error.h"
#include "satformer/distributed/local_store.h"
#include "satformer/io/file_descriptor.h"

namespace satformer::distributed {
namespace {

constexpr std::chrono::seconds kTimeToEnd{5};  // for the ranks that remain after a failure
constexpr const char* kProgram = "the program of the ranks";

// The signals that the launcher waits for, blocked while the object lives. SIGCHLD too, so that one wait serves all.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }

  // The next one; 0 when none comes within the time.
  int wait(std::chrono::milliseconds time) const {
    const timespec limit{.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1'000'000};
    const int signal = sigtimedwait(&signals_, nullptr, &limit);
    return signal < 0 ? 0 : signal;
  }

 private:
  sigset_t signals_{}, before_{};
};

std::string name_of(const std::string& assignment) { return assignment.substr(0, assignment.find('=')); }

// This process's environment with some variables set anew.
std::vector<std::string> environment_with(const std::vector<std::string>& assignments) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables[name_of(*entry)] = *entry;
  for (const std::string& assignment : assignments) variables[name_of(assignment)] = assignment;
  std::vector<std::string> environment;
  for (auto& [name, assignment] : variables) environment.push_back(assignment);
  return environment;
}

std::vector<std::string> rank_environment(const LaunchSettings& settings, int rank, std::uint16_t port) {
  std::vector<std::string> variables = rank_variables(rank, settings.ranks, port);
  if (settings.threads > 0) variables.push_back(fmt::format("OMP_NUM_THREADS={}", settings.threads));
  return environment_with(variables);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// posix_spawn and not fork: this process has the store's threads. A process group of its own, so that Ctrl-C reaches
// the ranks once, through the launcher.
pid_t spawn(std::vector<std::string> command, std::vector<std::string> environment, const sigset_t& mask) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = -1;
  const int code = posix_spawn(&pid, command.front().c_str(), nullptr, &attributes, pointers(command).data(),
                               pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (code != 0) fail_system("start", kProgram, code);
  return pid;
}

std::optional<std::string> failure_of(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) return fmt::format("has ended with exit code {}", WEXITSTATUS(status));
  return std::nullopt;
}

// The processes of the ranks; those that still run are ended with the object.
class Ranks {
 public:
  ~Ranks() {
    signal_all(SIGKILL);
    for (const auto& [pid, rank] : running_) retry_interrupted([pid = pid] { return ::waitpid(pid, nullptr, 0); });
  }
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void add(pid_t pid, int rank) { running_[pid] = rank; }
  bool running() const { return !running_.empty(); }
  void signal_all(int signal) const {
    for (const auto& [pid, rank] : running_) ::kill(pid, signal);
  }

  // Takes note of those that have ended. Returns "rank 1 was ended by signal 9 (Killed)" for one that failed.
  std::optional<std::string> collect() {
    std::optional<std::string> failure;
    for (auto item = running_.begin(); item != running_.end();) {
      int status = 0;
      if (retry_interrupted([&] { return ::waitpid(item->first, &status, WNOHANG); }) != item->first) {
        ++item;
        continue;
      }
      if (const auto how = failure_of(status); how && !failure) failure = fmt::format("rank {} {}", item->second, *how);
      item = running_.erase(item);
    }
    return failure;
  }

 private:
  std::map<pid_t, int> running_;
};

// Until all have ended or, after the first failure, the time for it is over. Returns what went wrong, in the words that
// the ranks are told.
std::optional<std::string> supervise(Ranks& ranks, const BlockedSignals& signals, LocalStore& store) {
  constexpr std::chrono::milliseconds kLook{1000};  // at the latest
  std::optional<std::string> failure;
  Clock::time_point deadline = Clock::time_point::max();
  while (ranks.running() && Clock::now() < deadline) {
    if (const int signal = signals.wait(failure ? kLook / 10 : kLook); signal != 0 && signal != SIGCHLD) {
      ranks.signal_all(signal);
    }
    const auto found = ranks.collect();
    if (!found || failure) continue;
    failure = store.tell_failure(*found);  // a rank may have told more
    deadline = Clock::now() + kTimeToEnd;
  }
  return failure;
}

}  // namespace

void launch(const LaunchSettings& settings) {
  const BlockedSignals signals;
  LocalStore store;
  Ranks ranks;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    ranks.add(spawn(settings.command, rank_environment(settings, rank, store.port()), signals.before()), rank);
  }
  const auto failure = supervise(ranks, signals, store);
  require(!failure, "{}; all ranks were ended", failure.value_or(""));
}

void follow_launcher() {
  const char* text = std::getenv(kLauncherVariable);
  if (text == nullptr) return;
  pid_t launcher = 0;
  std::from_chars(text, text + std::strlen(text), launcher);
  // The kernel ends this process with its parent; one that has ended before this call is seen by its absence.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == launcher) return;
  fmt::print(stderr, "satformer: error: the program that started this rank ({}={}) has ended\n", kLauncherVariable,
             text);
  ::_exit(1);
}

}  // namespace satformer::distributed
