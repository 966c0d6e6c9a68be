#pragma once
// The ranks that train together, and their collectives: every rank makes the same calls in the same order. Each call
// has a name, which errors repeat.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satformer/core/range.h"
#include "satformer/distributed/environment.h"

namespace satformer::distributed {

struct WorldOptions {
  // How long a rank waits for another one: when joining, in a collective, and for a sign of life.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  c10::Device device = c10::kCPU;  // a GPU: its tensors go through NCCL, the rest through Gloo
  // Called on another thread, in the middle of anything, when another rank has died, hangs or has failed: with one line
  // that names it and the collective that this rank was in. Must end the process; no collective would ever finish.
  std::function<void(const std::string& message)> on_failure;
};

class World {
 public:
  // One rank, without a network: collectives return at once.
  World();
  // Joins the others, and monitors them from then on. Error when they have not all joined within the timeout.
  World(const RankInfo& info, const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return info_.rank; }
  int size() const { return info_.size; }
  int local_rank() const { return info_.local_rank; }

  bool is_rank_zero() const { return info_.rank == 0; }  // the one that writes files and speaks
  // This rank's part of `count` things.
  Range partition(std::int64_t count) const { return satformer::partition(count, rank(), size()); }

  // The sum over the ranks, in place; the same bits on all of them.
  void all_reduce(const at::Tensor& tensor, const std::string& name);
  // Begins it; the tensor is the sum once the returned function has been called, and is left alone until then.
  using Wait = std::function<void()>;
  [[nodiscard]] Wait all_reduce_async(const at::Tensor& tensor, const std::string& name);

  void broadcast(const at::Tensor& tensor, int root, const std::string& name);
  std::string broadcast_text(const std::string& text, int root, const std::string& name);

  // [size, ...]: every rank's tensor, all of one shape and dtype.
  at::Tensor all_gather(const at::Tensor& tensor, const std::string& name);
  // By rank; texts may differ in length.
  std::vector<std::string> all_gather_text(const std::string& text, const std::string& name);

  void barrier(const std::string& name);

  // Tells the others that this rank ends because of an error, so that they name it. The process must end afterwards by
  // _exit: what is under way in the process groups never finishes.
  void report_failure(const std::string& message);

  // Leaves the others, all together. No collective may follow.
  void shutdown();

 private:
  struct Link;
  template <typename Start>
  Wait begin(const std::string& name, const Start& start);

  RankInfo info_;
  std::unique_ptr<Link> link_;  // null: alone
};

}  // namespace satformer::distributed
