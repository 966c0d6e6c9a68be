#pragma once
// How ranks notice that one of them has died, hangs or has failed. Every rank writes a beat into the store (how many
// collectives it has begun) and reads the others': a dead or stopped process no longer beats, a failed one has left a
// message. Gloo alone tells at best that some connection was closed, NCCL not even that.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "satformer/core/clock.h"
#include "satformer/distributed/store.h"

namespace satformer::distributed {

struct MonitorOptions {
  int rank = 0, size = 1;
  bool holds_store = false;  // this rank is the store's server
  std::string store_holder;  // what is gone when the store is: "rank 0", "the launcher"
  std::chrono::milliseconds timeout{0};
  // Called once, on a thread of this object, with one line that names the rank and the collective, after the other
  // ranks have been told or, where the store does not answer, after a few seconds. Must end the process by _exit.
  std::function<void(const std::string& message)> on_failure;
};

class Monitor {
 public:
  Monitor(const StorePtr& store, MonitorOptions settings);
  // Ends the threads, unless shutdown() has.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // After every rank has one: from here on silence counts.
  void begin();
  // After every rank has come here: from here on silence does not count.
  void end();

  // Counts a collective that this rank has begun; the number tells collectives apart.
  std::int64_t begun() { return ++collectives_; }
  void waiting_for(const std::string& collective);  // empty: for nothing

  // A collective has failed with `reason`. Waits until it is known which rank is to blame, and then does not return
  // (on_failure ends the process), or throws Error.
  [[noreturn]] void blame(const std::string& collective, std::int64_t number, const std::string& reason);

  // Tells the other ranks that this one ends because of `message`, and gives them time to read it: a few seconds at
  // most, whatever the store does. The process must end by _exit.
  void report(const std::string& message);

 private:
  struct Beat {
    std::string text;
    Clock::time_point changed;
    std::int64_t collectives = 0;
  };

  enum class Source { none, other_rank, silence, store };
  struct Verdict {
    Source source = Source::none;
    std::string text;
  };

  void exchange_beats();
  bool exchange();
  void judge();
  Verdict verdict(Clock::time_point now);
  Verdict verdict_of(Clock::time_point now) const;
  void wait_where_judged();
  void pass_on(const Verdict& verdict);
  template <typename Action>
  void try_for_seconds(Action action);
  void linger();
  int living();
  std::string activity();
  std::vector<int> ranks_before(std::int64_t number);
  bool pause(std::chrono::milliseconds time);
  void forgive(Clock::time_point now);

  MonitorOptions settings_;
  std::chrono::milliseconds interval_, silence_, suspicious_silence_;
  StorePtr beats_store_, tell_store_;  // a client of its own for each thread: one call at a time goes through a client

  std::atomic<std::int64_t> collectives_{0};
  std::mutex mutex_;  // what follows
  std::condition_variable changed_;
  bool ending_ = false, suspicious_ = false, reporting_ = false, judged_ = false;
  std::string waiting_for_, failure_, store_error_;
  std::map<int, Beat> beats_;
  Clock::time_point exchanged_;
  std::int64_t beat_ = 0;  // of the exchanging thread alone
  std::thread exchanging_, judging_;
};

}  // namespace satformer::distributed
