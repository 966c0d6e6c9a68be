#pragma once
// How ranks notice that one of them has died, hangs or has failed. Every rank writes a heartbeat into the store
// (how many collectives it has begun) and reads the others': that of a dead or stopped process no longer changes, and a
// failed one has left a message. Gloo alone tells at best that some connection was closed, NCCL not even that.
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
  Monitor(const StorePtr& store, MonitorOptions options);
  // Stops.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Starts the threads. After every rank has a monitor: from here on silence counts.
  void start();
  // Ends the threads. After every rank has reached this point: from here on silence does not count.
  void stop();

  // Counts a collective that this rank has begun; the number tells collectives apart.
  std::int64_t begin_collective() { return ++collectives_; }
  void waiting_for(const std::string& collective);  // empty: for nothing

  // A collective has failed with `reason`. Waits until it is known which rank has caused it, and then does not
  // return (on_failure ends the process), or throws Error.
  [[noreturn]] void fail_collective(const std::string& collective, std::int64_t number, const std::string& reason);

  // Tells the other ranks that this one ends because of `message`, and gives them time to read it: a few seconds at
  // most, whatever the store does. The process must end by _exit.
  void report(const std::string& message);

 private:
  struct Heartbeat {
    std::string text;
    Clock::time_point changed;
    std::int64_t collectives = 0;
  };

  enum class Source { none, other_rank, silence, store };
  struct Failure {
    Source source = Source::none;
    std::string text;
  };

  void exchange_heartbeats();
  bool exchange();
  void watch();
  Failure check_ranks(Clock::time_point now);
  Failure find_failure(Clock::time_point now) const;
  void wait_if_found();
  void tell_ranks(const Failure& failure);
  template <typename Action>
  void try_for_seconds(Action action);
  void wait_for_readers();
  int count_living();
  std::string activity();
  std::vector<int> ranks_behind(std::int64_t number);
  bool pause(std::chrono::milliseconds time);
  void restart_silence(Clock::time_point now);

  MonitorOptions options_;
  std::chrono::milliseconds interval_, silence_, short_silence_;
  // A client for each thread: only one call at a time goes through a client.
  StorePtr heartbeat_store_, failure_store_;

  std::atomic<std::int64_t> collectives_{0};
  std::mutex mutex_;  // what follows
  std::condition_variable changed_;
  bool stopping_ = false, collective_failed_ = false, reporting_ = false, found_ = false;
  std::string waiting_for_, failure_, store_error_;
  std::map<int, Heartbeat> heartbeats_;
  Clock::time_point exchanged_;
  std::int64_t heartbeat_count_ = 0;  // of the exchanging thread alone
  std::thread exchanger_, watcher_;
};

}  // namespace satformer::distributed
