#include "satformer/distributed/rendezvous.h"

#include <fmt/ranges.h>

#include <random>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "satformer/core/clock.h"
#include "satformer/core/error.h"
#include "satformer/core/first_line.h"

namespace satformer::distributed {
namespace {

using std::chrono::milliseconds;

constexpr const char* kGenerations = "generations";  // how many rank 0 has begun
constexpr const char* kInvitation = "invitation";    // "GENERATION NAME_1 NAME_2 ...", the latest
constexpr const char* kComplete = "complete";        // in a generation: every rank has joined
constexpr const char* kNobody = "-";
constexpr milliseconds kPause{20};

std::string name_key(int rank) { return fmt::format("rank/{}", rank); }
std::string here_key(const std::string& name) { return fmt::format("here/{}", name); }

// Tells this process from those that had its rank before.
std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

struct Invitation {
  std::int64_t generation = 0;
  std::vector<std::string> names;  // of ranks 1, 2, ...
};

class Rendezvous {
 public:
  Rendezvous(StorePtr store, const RankInfo& info, milliseconds timeout)
      : store_(std::move(store)), info_(info), timeout_(timeout), deadline_(Clock::now() + timeout) {}

  StorePtr run() { return info_.rank == 0 ? invite() : accept(); }

 private:
  StorePtr invite() {
    const std::int64_t generation = store_->add(kGenerations, 1);
    StorePtr own = generation_store(store_, generation);
    std::string sent;
    while (true) {
      const Invitation invitation{generation, names()};
      const std::string text = fmt::format("{} {}", generation, fmt::join(invitation.names, " "));
      if (text != sent) store_->set(kInvitation, text);
      sent = text;
      const std::vector<int> absent = missing(*own, invitation);
      if (absent.empty()) {
        own->set(kComplete, std::string("1"));
        return own;
      }
      repeat_failure(*own);
      if (Clock::now() > deadline_) fail_to_join(own.get(), absent);
      std::this_thread::sleep_for(kPause);
    }
  }

  StorePtr accept() {
    const std::string name = random_name();
    store_->set(name_key(info_.rank), name);
    StorePtr own;
    Invitation invitation;
    while (true) {
      const Invitation latest = read_invitation();
      if (latest.generation != invitation.generation && knows(latest, name)) {
        own = generation_store(store_, latest.generation);
        own->set(here_key(name), std::string("1"));
      }
      if (own) invitation = latest;
      if (own && own->check({kComplete})) return own;
      if (own) repeat_failure(*own);
      if (!own && info_.started_by == "satformer") repeat_failure(*generation_store(store_, kFirstGeneration));
      require(value_of(*store_, name_key(info_.rank)) == name, "another process has joined as rank {}", info_.rank);
      if (Clock::now() > deadline_) {
        fail_to_join(own.get(), own ? missing(*own, invitation) : std::vector<int>{0});
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  bool knows(const Invitation& invitation, const std::string& name) const {
    const auto index = static_cast<std::size_t>(info_.rank) - 1;
    return index < invitation.names.size() && invitation.names[index] == name;
  }

  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (int rank = 1; rank < info_.size; ++rank) {
      names.push_back(value_of(*store_, name_key(rank)).value_or(kNobody));
    }
    return names;
  }

  Invitation read_invitation() {
    Invitation invitation;
    std::istringstream words(value_of(*store_, kInvitation).value_or(""));
    words >> invitation.generation;
    for (std::string name; words >> name;) invitation.names.push_back(name);
    return invitation;
  }

  // The ranks that have not accepted the invitation.
  static std::vector<int> missing(c10d::Store& own, const Invitation& invitation) {
    std::vector<int> missing;
    for (std::size_t i = 0; i < invitation.names.size(); ++i) {
      if (!own.check({here_key(invitation.names[i])})) missing.push_back(static_cast<int>(i) + 1);
    }
    return missing;
  }

  static void repeat_failure(c10d::Store& own) {
    const auto failure = value_of(own, kFailureKey);
    require(!failure, "{}", failure.value_or(""));
  }

  [[noreturn]] void fail_to_join(c10d::Store* own, const std::vector<int>& missing) const {
    const std::string message =
        fmt::format("rank{} {} of {} did not join within {:.0f} s{}", missing.size() > 1 ? "s" : "",
                    fmt::join(missing, ", "), info_.size, std::chrono::duration<double>(timeout_).count(),
                    info_.started_by == "Slurm" ? "; start them all with srun" : "");
    if (own != nullptr) tell_failure(*own, info_, message);
    fail("{}", message);
  }

  StorePtr store_;
  const RankInfo& info_;
  milliseconds timeout_;
  Clock::time_point deadline_;
};

}  // namespace

StorePtr rendezvous(const StorePtr& store, const RankInfo& info, milliseconds timeout) {
  try {
    return Rendezvous(store, info, timeout).run();
  } catch (const c10::Error& error) {
    const std::string reason = error.what_without_backtrace();
    fail("{} has ended before all ranks had joined: its store is gone ({})",
         info.launcher_has_store ? "the launcher" : "rank 0", first_line(reason));
  }
}

void tell_failure(c10d::Store& generation, const RankInfo& info, const std::string& message) {
  try {
    set_once(generation, kFailureKey, fmt::format("rank {} has failed: {}", info.rank, message));
    // The store goes with its process: first the others read it.
    if (info.rank == 0 && !info.launcher_has_store) std::this_thread::sleep_for(25 * kPause);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): without a store there is nobody to tell
  }
}

}  // namespace satformer::distributed
