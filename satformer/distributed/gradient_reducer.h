#pragma once
// Sums the gradients over the ranks, bucket by bucket, while the backward pass still computes others.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "satformer/distributed/world.h"

namespace satformer::distributed {

struct ReducerOptions {
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  // Without it, all buckets are summed after the backward pass, and gradients stay in their own memory: for passes that
  // are recorded and replayed, in which nothing of ours can run.
  bool overlap = true;
};

// One step's forward and backward passes on this rank. Calls `before_last` right before the last of them, or not at all
// where this rank has none. Returns numbers to be summed as well: as many on every rank.
using Passes = std::function<std::vector<double>(const std::function<void()>& before_last)>;

class GradientReducer {
 public:
  // Parameters in the order in which the model registers them: the backward pass reaches the last first. One dtype, one
  // device. In a world of one rank nothing is ever done.
  GradientReducer(World& world, const std::vector<at::Tensor>& parameters, const ReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Runs the passes and returns the sums of their numbers; every .grad() is then the sum over the ranks. The buckets'
  // all-reduces begin within the last pass, as soon as a bucket is full, the rest after it. A parameter without a
  // gradient on all ranks stays without one, as in a world of one rank. `name` is that of the numbers' all-reduce.
  std::vector<double> reduce(const Passes& passes, const std::string& name);

  std::size_t num_buckets() const { return buckets_.size(); }
  // All-reduces that began within the last step's last pass.
  std::size_t begun_in_backward() const { return begun_in_backward_; }

 private:
  struct Member {
    at::Tensor parameter;
    std::size_t index = 0;   // in the order of the constructor's list
    std::int64_t begin = 0;  // in the bucket
    bool ready = false;      // its gradient is in the bucket
  };
  struct Bucket {
    std::vector<Member> members;
    std::int64_t size = 0;
    at::Tensor memory;  // [size]
    std::size_t ready = 0;
    World::Wait wait;
  };
  class Hook;

  void make_buckets(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);
  void on_gradient(Bucket& bucket, Member& member);
  void fill(Bucket& bucket, Member& member, bool adopt);
  void reduce_full_buckets();
  void reduce_all_buckets();
  void reduce_bucket(Bucket& bucket);
  at::Tensor has_gradient() const;
  void take_sums(const double* has_gradient);
  static at::Tensor view_of(const Bucket& bucket, const Member& member);

  World& world_;
  ReducerOptions options_;
  std::vector<Bucket> buckets_;
  std::size_t num_parameters_;
  std::size_t begun_ = 0;  // buckets, from the first on: all ranks reduce them in this order
  std::size_t begun_in_backward_ = 0;
  bool in_last_pass_ = false;
};

}  // namespace satformer::distributed
