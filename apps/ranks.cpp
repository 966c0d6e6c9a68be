#include "apps/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "apps/failure.h"
#include "apps/options.h"
#include "satformer/distributed/rank_device.h"

namespace satformer::apps {
namespace {

// The end of this process by a failure: the first thread that gets there prints its message.
class FailedEnd {
 public:
  explicit FailedEnd(int rank) : rank_(rank) {}

  // False when another thread is ending the process.
  bool claim() { return !claimed_.exchange(true); }

  [[noreturn]] void end(const std::string& message) const {
    print_error(fmt::format("rank {}: {}", rank_, message));
    std::fflush(nullptr);
    ::_exit(1);
  }

 private:
  int rank_;
  std::atomic<bool> claimed_{false};
};

}  // namespace

void run_as_rank(const distributed::RankInfo& info, const RankSettings& settings,
                 const std::function<void(c10::Device, const std::shared_ptr<distributed::World>&)>& work) {
  FailedEnd failed(info.rank);
  std::shared_ptr<distributed::World> world;
  try {
    const c10::Device device = distributed::device_of_rank(settings.device, info);
    distributed::WorldOptions options;
    options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(settings.timeout_seconds * 1e3));
    options.device = device;
    options.on_failure = [&failed](const std::string& message) {
      if (failed.claim()) failed.end(message);
    };
    world = std::make_shared<distributed::World>(info, options);
    work(device, world);
  } catch (...) {
    const std::string message = error_message(std::current_exception());
    while (!failed.claim()) ::pause();  // another thread is about to end the process
    if (world) world->report_failure(message);
    failed.end(message);
  }
}

}  // namespace satformer::apps
