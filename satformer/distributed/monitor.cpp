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

std::string beat_key(int rank) { return fmt::format("beat/{}", rank); }

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Monitor::Monitor(const StorePtr& store, MonitorOptions settings)
    : settings_(std::move(settings)),
      interval_(std::clamp(settings_.timeout / 20, kShortestInterval, kLongestInterval)),
      // Half of the timeout leaves time to tell it.
      silence_(settings_.timeout / 2),
      suspicious_silence_(std::min(silence_, std::max(kShortestSilence, 3 * interval_))),
      beats_store_(store->clone()),
      tell_store_(store->clone()) {
  beats_store_->set(beat_key(settings_.rank), std::string("0 0"));
}

Monitor::~Monitor() { end(); }

void Monitor::begin() {
  forgive(Clock::now());
  exchanging_ = std::thread([this] { exchange_beats(); });
  judging_ = std::thread([this] { judge(); });
}

void Monitor::end() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread* thread : {&exchanging_, &judging_}) {
    if (thread->joinable()) thread->join();
  }
}

void Monitor::waiting_for(const std::string& collective) {
  const std::scoped_lock lock(mutex_);
  waiting_for_ = collective;
}

// The exchanging thread talks to the store, and may hang there with it; the judging one does not depend on it.
void Monitor::exchange_beats() {
  bool going_on = true;
  while (going_on) {
    try {
      going_on = exchange() && pause(interval_);
    } catch (const std::exception& error) {
      const std::scoped_lock lock(mutex_);
      if (!ending_) store_error_ = error.what();
      changed_.notify_all();
      return;
    }
  }
}

// False when a rank has failed.
bool Monitor::exchange() {
  beats_store_->set(beat_key(settings_.rank), fmt::format("{} {}", ++beat_, collectives_.load()));
  const std::string failure =
      beats_store_->check({kFailureKey}) ? beats_store_->get_to_str(kFailureKey) : std::string();
  std::vector<std::string> keys;
  for (int rank = 0; rank < settings_.size; ++rank) keys.push_back(beat_key(rank));
  const auto values = beats_store_->multiGet(keys);

  const std::scoped_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  exchanged_ = now;
  failure_ = failure;
  for (int rank = 0; rank < settings_.size; ++rank) {
    const auto& value = values[static_cast<std::size_t>(rank)];
    std::string text(value.begin(), value.end());
    Beat& beat = beats_[rank];
    if (beat.text == text) continue;
    beat.changed = now;
    const std::size_t space = text.find(' ');
    if (space != text.npos) std::from_chars(text.data() + space + 1, text.data() + text.size(), beat.collectives);
    beat.text = std::move(text);
  }
  if (!failure_.empty()) changed_.notify_all();
  return failure_.empty();
}

void Monitor::judge() {
  Clock::time_point before = Clock::now();
  while (pause(interval_)) {
    const Clock::time_point now = Clock::now();
    // This process was stopped itself and knows nothing of the others' silence.
    if (now - before > silence_ / 2) forgive(now);
    before = now;
    const Verdict found = verdict(now);
    if (found.source == Source::none) continue;
    try_for_seconds([this, found] { pass_on(found); });
    settings_.on_failure(fmt::format("{}, while this rank {}", found.text, activity()));
    return;
  }
}

Monitor::Verdict Monitor::verdict(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (reporting_) return {};  // this rank is the one that fails
  const Verdict found = verdict_of(now);
  judged_ = found.source != Source::none;
  return found;
}

Monitor::Verdict Monitor::verdict_of(Clock::time_point now) const {
  if (!failure_.empty()) return {Source::other_rank, failure_};
  if (!store_error_.empty()) {
    return {Source::store, fmt::format("{} has ended: its store is gone", settings_.store_holder)};
  }
  if (now - exchanged_ > silence_) {
    return {Source::store, fmt::format("{}, which holds the ranks' store, has not answered for {:.1f} s",
                                       settings_.store_holder, seconds(now - exchanged_))};
  }
  const milliseconds allowed = suspicious_ ? suspicious_silence_ : silence_;
  for (const auto& [rank, beat] : beats_) {
    // Of the others nothing is known since the last exchange.
    const Clock::duration silence = exchanged_ - beat.changed;
    if (rank == settings_.rank || silence <= allowed) continue;
    return {Source::silence,
            fmt::format("rank {} has died or hangs: not heard from for {:.1f} s", rank, seconds(silence))};
  }
  return {};
}

void Monitor::pass_on(const Verdict& verdict) {
  if (verdict.source == Source::silence) set_once(*tell_store_, kFailureKey, verdict.text);
  if (verdict.source == Source::store) return;  // nothing to tell, and nowhere
  tell_store_->add(kReadersKey, 1);
  if (settings_.holds_store) linger();
}

void Monitor::blame(const std::string& collective, std::int64_t number, const std::string& reason) {
  const bool timed_out = reason.find("imed out") != reason.npos;
  {
    const std::scoped_lock lock(mutex_);
    suspicious_ = true;
  }
  waiting_for(collective);
  // A rank that lives but does not come has had its time; a connection that broke belongs to one that falls silent.
  const auto deadline = Clock::now() + 2 * interval_ + (timed_out ? milliseconds(0) : 2 * suspicious_silence_);
  while (Clock::now() < deadline) std::this_thread::sleep_for(interval_ / 4);
  wait_where_judged();
  const std::vector<int> late = ranks_before(number);
  if (timed_out && !late.empty()) {
    fail("rank{} {} did not come to {} within {:.0f} s, in which this rank waited", late.size() > 1 ? "s" : "",
         fmt::join(late, ", "), collective, seconds(settings_.timeout));
  }
  fail("{} failed: {}", collective, first_line(reason));
}

// Where the other thread has found out who is to blame, it ends the process.
void Monitor::wait_where_judged() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !judged_; });
}

void Monitor::report(const std::string& message) {
  {
    const std::scoped_lock lock(mutex_);
    reporting_ = true;
  }
  try_for_seconds([this, message] {
    set_once(*tell_store_, kFailureKey, fmt::format("rank {} has failed: {}", settings_.rank, message));
    tell_store_->add(kReadersKey, 1);
    if (settings_.holds_store) linger();
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
void Monitor::linger() {
  const Clock::time_point deadline = Clock::now() + kShortestSilence + 3 * interval_;
  while (Clock::now() < deadline && tell_store_->add(kReadersKey, 0) < living()) {
    std::this_thread::sleep_for(interval_ / 4);
  }
}

// The ranks that were heard from of late, this one included.
int Monitor::living() {
  const std::scoped_lock lock(mutex_);
  int living = 0;
  for (const auto& [rank, beat] : beats_) {
    living += rank == settings_.rank || exchanged_ - beat.changed <= suspicious_silence_ ? 1 : 0;
  }
  return living;
}

std::string Monitor::activity() {
  const std::scoped_lock lock(mutex_);
  return waiting_for_.empty() ? "was between collectives" : fmt::format("waited for {}", waiting_for_);
}

std::vector<int> Monitor::ranks_before(std::int64_t number) {
  const std::scoped_lock lock(mutex_);
  std::vector<int> late;
  for (const auto& [rank, beat] : beats_) {
    if (rank != settings_.rank && beat.collectives < number) late.push_back(rank);
  }
  return late;
}

// Returns early when there is news; false when the watch ends.
bool Monitor::pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time,
                    [this] { return ending_ || (!reporting_ && (!failure_.empty() || !store_error_.empty())); });
  return !ending_;
}

void Monitor::forgive(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  exchanged_ = now;
  for (int rank = 0; rank < settings_.size; ++rank) beats_[rank].changed = now;
}

}  // namespace satformer::distributed
