#include "satformer/distributed/monitor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <memory>

#include "satformer/core/error.h"
#include "satformer/core/first_line.h"

namespace satformer::distributed {
namespace {

using std::chrono::milliseconds;

constexpr const char* kReadersKey = "failure_read_by";
constexpr milliseconds kShortestInterval{50}, kLongestInterval{500};
constexpr milliseconds kShortestSilence{1500};

std::string heartbeat_key(int rank) { return fmt::format("heartbeat/{}", rank); }

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Monitor::Monitor(const StorePtr& store, MonitorOptions options)
    : options_(std::move(options)),
      interval_(std::clamp(options_.timeout / 20, kShortestInterval, kLongestInterval)),
      // Half of the timeout leaves time to tell it.
      silence_(options_.timeout / 2),
      short_silence_(std::min(silence_, std::max(kShortestSilence, 3 * interval_))),
      heartbeat_store_(store->clone()),
      failure_store_(store->clone()) {
  heartbeat_store_->set(heartbeat_key(options_.rank), std::string("0 0"));
}

Monitor::~Monitor() { stop(); }

void Monitor::start() {
  restart_silence(Clock::now());
  exchanger_ = std::thread([this] { exchange_heartbeats(); });
  watcher_ = std::thread([this] { watch(); });
}

void Monitor::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread* thread : {&exchanger_, &watcher_}) {
    if (thread->joinable()) thread->join();
  }
}

void Monitor::waiting_for(const std::string& collective) {
  const std::scoped_lock lock(mutex_);
  waiting_for_ = collective;
}

// The exchanging thread talks to the store, and may hang there with it; the watching one does not depend on it.
void Monitor::exchange_heartbeats() {
  bool going_on = true;
  while (going_on) {
    try {
      going_on = exchange() && pause(interval_);
    } catch (const std::exception& error) {
      const std::scoped_lock lock(mutex_);
      if (!stopping_) store_error_ = error.what();
      changed_.notify_all();
      return;
    }
  }
}

// False when a rank has failed.
bool Monitor::exchange() {
  heartbeat_store_->set(heartbeat_key(options_.rank), fmt::format("{} {}", ++heartbeat_count_, collectives_.load()));
  const std::string failure =
      heartbeat_store_->check({kFailureKey}) ? heartbeat_store_->get_to_str(kFailureKey) : std::string();
  std::vector<std::string> keys;
  for (int rank = 0; rank < options_.size; ++rank) keys.push_back(heartbeat_key(rank));
  const auto values = heartbeat_store_->multiGet(keys);

  const std::scoped_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  exchanged_ = now;
  failure_ = failure;
  for (int rank = 0; rank < options_.size; ++rank) {
    const auto& value = values[static_cast<std::size_t>(rank)];
    std::string text(value.begin(), value.end());
    Heartbeat& heartbeat = heartbeats_[rank];
    if (heartbeat.text == text) continue;
    heartbeat.changed = now;
    const std::size_t space = text.find(' ');
    if (space != text.npos) std::from_chars(text.data() + space + 1, text.data() + text.size(), heartbeat.collectives);
    heartbeat.text = std::move(text);
  }
  if (!failure_.empty()) changed_.notify_all();
  return failure_.empty();
}

void Monitor::watch() {
  Clock::time_point before = Clock::now();
  while (pause(interval_)) {
    const Clock::time_point now = Clock::now();
    // This process was stopped itself and knows nothing of the others' silence.
    if (now - before > silence_ / 2) restart_silence(now);
    before = now;
    const Failure found = check_ranks(now);
    if (found.source == Source::none) continue;
    try_for_seconds([this, found] { tell_ranks(found); });
    options_.on_failure(fmt::format("{}, while this rank {}", found.text, activity()));
    return;
  }
}

Monitor::Failure Monitor::check_ranks(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (reporting_) return {};  // this rank is the one that fails
  const Failure found = find_failure(now);
  found_ = found.source != Source::none;
  return found;
}

Monitor::Failure Monitor::find_failure(Clock::time_point now) const {
  if (!failure_.empty()) return {Source::other_rank, failure_};
  if (!store_error_.empty()) {
    return {Source::store, fmt::format("{} has ended: its store is gone", options_.store_holder)};
  }
  if (now - exchanged_ > silence_) {
    return {Source::store, fmt::format("{}, which holds the ranks' store, has not answered for {:.1f} s",
                                       options_.store_holder, seconds(now - exchanged_))};
  }
  const milliseconds allowed = collective_failed_ ? short_silence_ : silence_;
  for (const auto& [rank, heartbeat] : heartbeats_) {
    // Of the others nothing is known since the last exchange.
    const Clock::duration silence = exchanged_ - heartbeat.changed;
    if (rank == options_.rank || silence <= allowed) continue;
    return {Source::silence,
            fmt::format("rank {} has died or hangs: not heard from for {:.1f} s", rank, seconds(silence))};
  }
  return {};
}

void Monitor::tell_ranks(const Failure& failure) {
  if (failure.source == Source::silence) set_once(*failure_store_, kFailureKey, failure.text);
  if (failure.source == Source::store) return;  // nothing to tell, and nowhere
  failure_store_->add(kReadersKey, 1);
  if (options_.holds_store) wait_for_readers();
}

void Monitor::fail_collective(const std::string& collective, std::int64_t number, const std::string& reason) {
  const bool timed_out = reason.find("imed out") != reason.npos;
  {
    const std::scoped_lock lock(mutex_);
    collective_failed_ = true;
  }
  waiting_for(collective);
  // A rank that lives but does not take part has had its time; a broken connection belongs to one that falls silent.
  const auto deadline = Clock::now() + 2 * interval_ + (timed_out ? milliseconds(0) : 2 * short_silence_);
  while (Clock::now() < deadline) std::this_thread::sleep_for(interval_ / 4);
  wait_if_found();
  const std::vector<int> late = ranks_behind(number);
  if (timed_out && !late.empty()) {
    fail("rank{} {} did not take part in {} within {:.0f} s, for which this rank waited", late.size() > 1 ? "s" : "",
         fmt::join(late, ", "), collective, seconds(options_.timeout));
  }
  fail("{} failed: {}", collective, first_line(reason));
}

// Where the other thread has found the rank that failed, it ends the process.
void Monitor::wait_if_found() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !found_; });
}

void Monitor::report(const std::string& message) {
  {
    const std::scoped_lock lock(mutex_);
    reporting_ = true;
  }
  try_for_seconds([this, message] {
    set_once(*failure_store_, kFailureKey, fmt::format("rank {} has failed: {}", options_.rank, message));
    failure_store_->add(kReadersKey, 1);
    if (options_.holds_store) wait_for_readers();
  });
}

// On a thread of its own, which is left behind where the store does not answer: the process is about to end.
template <typename Action>
void Monitor::try_for_seconds(Action action) {
  const auto done = std::make_shared<std::promise<void>>();
  std::future<void> future = done->get_future();
  std::thread([done, action = std::move(action)] {
    try {
      action();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the store has gone meanwhile
    }
    done->set_value();
  }).detach();
  future.wait_for(kShortestSilence + 6 * interval_);
}

// The store goes with this process: first the others read what is in it.
void Monitor::wait_for_readers() {
  const Clock::time_point deadline = Clock::now() + kShortestSilence + 3 * interval_;
  while (Clock::now() < deadline && failure_store_->add(kReadersKey, 0) < count_living()) {
    std::this_thread::sleep_for(interval_ / 4);
  }
}

// The ranks that were heard from of late, this one included.
int Monitor::count_living() {
  const std::scoped_lock lock(mutex_);
  int living = 0;
  for (const auto& [rank, heartbeat] : heartbeats_) {
    living += rank == options_.rank || exchanged_ - heartbeat.changed <= short_silence_ ? 1 : 0;
  }
  return living;
}

std::string Monitor::activity() {
  const std::scoped_lock lock(mutex_);
  return waiting_for_.empty() ? "was between collectives" : fmt::format("waited for {}", waiting_for_);
}

std::vector<int> Monitor::ranks_behind(std::int64_t number) {
  const std::scoped_lock lock(mutex_);
  std::vector<int> late;
  for (const auto& [rank, heartbeat] : heartbeats_) {
    if (rank != options_.rank && heartbeat.collectives < number) late.push_back(rank);
  }
  return late;
}

// Returns early when there is news; false when the monitor stops.
bool Monitor::pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time,
                    [this] { return stopping_ || (!reporting_ && (!failure_.empty() || !store_error_.empty())); });
  return !stopping_;
}

void Monitor::restart_silence(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  exchanged_ = now;
  for (int rank = 0; rank < options_.size; ++rank) heartbeats_[rank].changed = now;
}

}  // namespace satformer::distributed
