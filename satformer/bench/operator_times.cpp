#include "satformer/bench/operator_times.h"

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "satformer/core/clock.h"

namespace satformer::bench {
namespace {

// The callbacks are plain functions. ATen's own way to give them a state is the thread's debug info, which autograd
// hands on to the threads that it runs a backward pass on.
constexpr auto kSlot = c10::DebugInfoKind::TEST_INFO;

class Recorder : public c10::DebugInfoBase {
 public:
  explicit Recorder(std::function<void()> synchronize) : synchronize_(std::move(synchronize)) {}

  void synchronize() const {
    if (synchronize_) synchronize_();
  }
  void add(const char* name, Part part, double seconds) {
    const std::scoped_lock lock(mutex_);
    OperatorTime& time = times_[{name, part}];
    time.seconds += seconds;
    time.calls += 1;
  }
  std::vector<OperatorTime> longest_first() const {
    std::vector<OperatorTime> result;
    for (const auto& [key, time] : times_) result.push_back({key.first, key.second, time.seconds, time.calls});
    std::stable_sort(result.begin(), result.end(),
                     [](const OperatorTime& a, const OperatorTime& b) { return a.seconds > b.seconds; });
    return result;
  }

 private:
  std::function<void()> synchronize_;
  std::mutex mutex_;
  std::map<std::pair<std::string, Part>, OperatorTime> times_;
};

struct Call : public at::ObserverContext {
  Call* caller = nullptr;
  Part part = Part::other;
  double inside = 0.0;  // seconds of the operators that it called
  Clock::time_point start;
};

// The operator that this thread is in.
thread_local Call* innermost = nullptr;

Part part_inside(Part own, const Call* caller) {
  if (caller == nullptr) return own;
  if (caller->part == Part::attention || caller->part == Part::optimizer) return caller->part;
  return caller->part == Part::fused_passes && own == Part::other ? Part::fused_passes : own;
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  auto call = std::make_unique<Call>();
  call->caller = innermost;
  call->part = part_inside(part_of(function.name()), innermost);
  innermost = call.get();
  call->start = Clock::now();
  return call;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* recorder = static_cast<Recorder*>(c10::ThreadLocalDebugInfo::get(kSlot));
  auto* call = static_cast<Call*>(context);
  if (recorder != nullptr) recorder->synchronize();
  const double seconds = seconds_since(call->start);
  innermost = call->caller;
  if (call->caller != nullptr) call->caller->inside += seconds;
  if (recorder != nullptr) recorder->add(function.name(), call->part, seconds - call->inside);
}

class CallbackGuard {
 public:
  CallbackGuard()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(on_start, on_end).scopes({at::RecordScope::FUNCTION}))) {}
  ~CallbackGuard() { at::removeCallback(handle_); }
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

 private:
  at::CallbackHandle handle_;
};

constexpr std::array kNamedOperators = std::to_array<NamedOperator>({
    {"aten::mm", Part::matrix_products},
    {"aten::addmm", Part::matrix_products},
    {"aten::_addmm_activation", Part::matrix_products},
    {"aten::bmm", Part::matrix_products},
    {"aten::baddbmm", Part::matrix_products},
    {"aten::mv", Part::matrix_products},
    {"aten::addmv", Part::matrix_products},
    {"aten::linear", Part::matrix_products},
    {"aten::matmul", Part::matrix_products},
    {"satformer::causal_attention", Part::attention},
    {"satformer::causal_attention_backward", Part::attention},
    {"aten::_fused_adamw_", Part::optimizer},
    {"satformer::adamw_", Part::optimizer},
    {"satformer::sum_of_squares", Part::optimizer},  // clipping's norm of the gradients
});

// `name`, or `name` with the "_" of an operator that works in place.
bool is_called(std::string_view text, std::string_view name) {
  return text.starts_with(name) && (text.size() == name.size() || text.substr(name.size()) == "_");
}

}  // namespace

const char* name_of(Part part) {
  constexpr std::array<const char*, kNumParts> kNames{"matrix_products", "attention", "fused_passes", "optimizer",
                                                      "other"};
  return kNames.at(static_cast<std::size_t>(part));
}

std::span<const NamedOperator> named_operators() { return kNamedOperators; }

Part part_of(std::string_view name) {
  const auto* found = std::find_if(kNamedOperators.begin(), kNamedOperators.end(),
                                   [&](const NamedOperator& known) { return is_called(name, known.name); });
  if (found != kNamedOperators.end()) return found->part;
  if (name.starts_with("satformer::")) return Part::fused_passes;
  if (name.starts_with("aten::_foreach_")) return Part::optimizer;
  const bool attends = name.find("scaled_dot_product") != name.npos || name.find("_attention") != name.npos;
  return attends && name.starts_with("aten::") ? Part::attention : Part::other;
}

std::vector<OperatorTime> time_operators(const std::function<void()>& work, const std::function<void()>& synchronize) {
  const auto recorder = std::make_shared<Recorder>(synchronize);
  const c10::DebugInfoGuard debug_info(kSlot, recorder);
  const CallbackGuard callback;
  work();
  return recorder->longest_first();
}

}  // namespace satformer::bench
