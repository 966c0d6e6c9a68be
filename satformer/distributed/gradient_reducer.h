#pragma once
// Sums the gradients over the ranks, bucket by bucket, while the backward pass still computes others.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "satformer/distributed/world.h"

namespace satformer::distributed {

struct ReducerOptions {
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  // Without it, all buckets are summed after the backward pass, and gradients stay in their own memory: for passes that
  // are recorded and replayed, in which nothing of ours can run.
  bool overlap = true;
};

// A step:    [backward passes of all micro-batches but the last]
//            reducer.arm();
//            backward pass of the last micro-batch             sums of full buckets begin meanwhile
//            used = reducer.end_pass();                        sums of the other buckets begin
//            world.sum(used, ...)
//            reducer.finish(used);                             every .grad() is the sum
// A rank without any micro-batch calls the same but for the passes.
class GradientReducer {
 public:
  // In the order in which gradients are expected last to first: parameters as the model registers them. One dtype, one
  // device. Alone in the world nothing is ever done.
  GradientReducer(World& world, const std::vector<at::Tensor>& parameters, const ReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // The next backward pass is the step's last.
  void arm();

  // The last backward pass is over: begins the sums that have not begun. Returns float64 [number of parameters], on the
  // CPU: 1 where this rank has a gradient.
  at::Tensor end_pass();

  // Waits for the sums and puts them into place. Where `used`, summed over the ranks, is 0, a parameter stays without
  // gradient, as in a world of one rank.
  void finish(const at::Tensor& used);

  std::size_t num_buckets() const { return buckets_.size(); }
  // Sums that began before end_pass(), in the last step.
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
  void begin_sums(bool of_all);
  at::Tensor used() const;
  static at::Tensor view_of(const Bucket& bucket, const Member& member);

  World& world_;
  ReducerOptions options_;
  std::vector<Bucket> buckets_;
  std::size_t num_parameters_;
  std::size_t begun_ = 0;  // buckets, from the first on: all ranks sum them in this order
  std::size_t begun_in_backward_ = 0;
  bool armed_ = false;
};

}  // namespace satformer::distributed
