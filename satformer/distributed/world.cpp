#include "satformer/distributed/world.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "satformer/core/error.h"
#include "satformer/core/first_line.h"
#include "satformer/distributed/monitor.h"
#include "satformer/distributed/process_group.h"
#include "satformer/distributed/rendezvous.h"

namespace satformer::distributed {
namespace {

constexpr const char* kShutdownKey = "shut_down";
constexpr std::chrono::seconds kShutdownTime{5};

MonitorOptions monitor_options(const RankInfo& info, const WorldOptions& options) {
  return {.rank = info.rank,
          .size = info.size,
          .holds_store = info.rank == 0 && !info.launcher_has_store,
          .store_holder = info.launcher_has_store ? "the launcher" : "rank 0",
          .timeout = options.timeout,
          .on_failure = options.on_failure};
}

at::Tensor bytes_of(const std::string& text, std::int64_t size) {
  at::Tensor bytes = at::zeros({size}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.data_ptr<std::uint8_t>());  // a null pointer for an empty text
  return bytes;
}

std::string text_of(const at::Tensor& bytes, std::int64_t size) {
  const std::uint8_t* first = bytes.const_data_ptr<std::uint8_t>();
  return {first, first + size};
}

at::Tensor size_of(const std::string& text) { return at::tensor(static_cast<std::int64_t>(text.size()), at::kLong); }

}  // namespace

struct World::Link {
  // While it lives LibTorch prints nothing: c10d has dozens of lines for what an Error or the monitor says in one. A
  // level that the user has set stays.
  class QuietLogging {
   public:
    QuietLogging() : before_(FLAGS_caffe2_log_level) {
      constexpr int kFatal = 3;
      if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
    }
    ~QuietLogging() { FLAGS_caffe2_log_level = before_; }
    QuietLogging(const QuietLogging&) = delete;
    QuietLogging& operator=(const QuietLogging&) = delete;

   private:
    int before_;
  };

  Link(const RankInfo& info, const WorldOptions& options)
      : store(rendezvous(join_store(info, options.timeout), info, options.timeout)) {
    try {
      connect(info, options);
    } catch (const c10::Error& error) {
      fail_to_connect(info, error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail_to_connect(info, error.what());
    }
  }

  void connect(const RankInfo& info, const WorldOptions& options) {
    monitor.emplace(store, monitor_options(info, options));
    gloo = make_gloo(store, info, options.timeout);
    if (options.device.is_cuda()) nccl = make_nccl(store, info, options.timeout, options.device);
    monitor->start();
  }

  // The groups' own errors do not name the rank that caused them; the one that failed first has told.
  [[noreturn]] void fail_to_connect(const RankInfo& info, const std::string& reason) const {
    const std::string message = first_line(reason);
    tell_failure(*store, info, message);
    const std::string own = fmt::format("rank {} ", info.rank), told = value_of(*store, kFailureKey).value_or(own);
    fail("{}", told.starts_with(own) ? message : told);
  }

  c10d::Backend& backend(const at::Tensor& tensor) const { return tensor.is_cuda() ? *nccl : *gloo; }

  QuietLogging quiet;
  StorePtr store;                  // of this generation
  std::optional<Monitor> monitor;  // its first heartbeat is in the store before the groups wait for one another
  BackendPtr gloo, nccl;
};

World::World() = default;

World::World(const RankInfo& info, const WorldOptions& options) : info_(info) {
  require(static_cast<bool>(options.on_failure), "a world needs on_failure");
  if (info.size > 1) link_ = std::make_unique<Link>(info, options);
}

World::~World() = default;

// Where the collective fails, the monitor finds out which rank has caused it.
template <typename Start>
World::Wait World::begin(const std::string& name, const Start& start) {
  const std::int64_t number = link_->monitor->begin_collective();
  const auto guarded = [this, name, number](const auto& action) {
    try {
      action();
    } catch (const c10::Error& error) {
      link_->monitor->fail_collective(name, number, error.what_without_backtrace());
    } catch (const std::exception& error) {
      link_->monitor->fail_collective(name, number, error.what());
    }
  };
  c10::intrusive_ptr<c10d::Work> work;
  guarded([&] { work = start(); });
  return [this, name, work, guarded] {
    link_->monitor->waiting_for(name);
    guarded([&] { work->wait(); });
    link_->monitor->waiting_for("");
  };
}

World::Wait World::all_reduce_async(const at::Tensor& tensor, const std::string& name) {
  if (size() == 1) return [] {};
  return begin(name, [&] {
    std::vector<at::Tensor> tensors{tensor};
    return link_->backend(tensor).allreduce(tensors);
  });
}

void World::all_reduce(const at::Tensor& tensor, const std::string& name) { all_reduce_async(tensor, name)(); }

void World::broadcast(const at::Tensor& tensor, int root, const std::string& name) {
  if (size() == 1) return;
  begin(name, [&] {
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return link_->backend(tensor).broadcast(tensors, options);
  })();
}

std::string World::broadcast_text(const std::string& text, int root, const std::string& name) {
  if (size() == 1) return text;
  const at::Tensor size = size_of(text);
  broadcast(size, root, name);
  const auto length = size.item<std::int64_t>();
  const at::Tensor bytes = rank() == root ? bytes_of(text, length) : at::zeros({length}, at::kByte);
  if (length > 0) broadcast(bytes, root, name);
  return text_of(bytes, length);
}

at::Tensor World::all_gather(const at::Tensor& tensor, const std::string& name) {
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape.insert(shape.begin(), size());
  if (size() == 1) return tensor.reshape(shape);
  at::Tensor all = at::empty(shape, tensor.options());
  at::Tensor flat = all.view(-1), mine = tensor.contiguous().view(-1);
  begin(name, [&] { return link_->backend(tensor)._allgather_base(flat, mine); })();
  return all;
}

std::vector<std::string> World::all_gather_text(const std::string& text, const std::string& name) {
  const at::Tensor sizes = all_gather(size_of(text), name);
  const std::int64_t* lengths = sizes.const_data_ptr<std::int64_t>();
  const std::int64_t longest = std::max<std::int64_t>(1, *std::max_element(lengths, lengths + size()));
  const at::Tensor bytes = all_gather(bytes_of(text, longest), name);
  std::vector<std::string> texts;
  for (int r = 0; r < size(); ++r) texts.push_back(text_of(bytes[r], lengths[r]));
  return texts;
}

void World::barrier(const std::string& name) {
  if (size() > 1) all_reduce(at::zeros({1}), name);
}

void World::report_failure(const std::string& message) {
  if (size() > 1) link_->monitor->report(message);
}

void World::shutdown() {
  if (size() == 1) return;
  barrier("the shutdown");
  link_->monitor->stop();
  // Rank 0 may hold the store: it goes last, but does not wait for a rank that dies on its way out.
  link_->store->add(kShutdownKey, 1);
  const Clock::time_point deadline = Clock::now() + kShutdownTime;
  while (is_rank_zero() && link_->store->add(kShutdownKey, 0) < size() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace satformer::distributed
