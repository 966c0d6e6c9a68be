#pragma once
// The things that are timed, a step at a time.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>

#include "satformer/distributed/world.h"
#include "satformer/run/run_config.h"

namespace satformer::bench {

class Workload {
 public:
  Workload() = default;
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // Asks for one step; asynchronous devices may still be at work when it returns.
  virtual void step() = 0;
  virtual std::int64_t num_parameters() const = 0;
};

// A training step of `train::Trainer` itself (forward, backward, clipping, AdamW) on random tokens. data.data_dir is
// not read. The ranks of `world` take parts of a step. Error when a step's loss or gradient is not finite.
std::unique_ptr<Workload> make_training_workload(train::RunConfig config, c10::Device device, c10::ScalarType dtype,
                                                 const std::shared_ptr<distributed::World>& world);

// The lower bound of a training step: the trunk's matrix products (forward, gradient of the input, gradient of the
// weight), packed as few as they can be,
//   q, k, v: d -> (H + 2 H_kv) hd     o: H hd -> d     gate, up: d -> 2 f     down: f -> d     head: d -> V
// and causal scaled_dot_product_attention, forward and backward; nothing else. Each layer has its own weights,
// gradients and activations, as in a model; nothing is allocated for the products inside a step. Only the sizes of
// `config` count.
std::unique_ptr<Workload> make_bound_workload(const train::RunConfig& config, c10::Device device,
                                              c10::ScalarType dtype);

// Floating-point operations a second of the product of two large square matrices: what the machine can do.
struct ProductRate {
  std::int64_t size = 0;  // of the matrices
  double flops_per_second = 0.0;
};
ProductRate measure_product_rate(c10::Device device, c10::ScalarType dtype);

}  // namespace satformer::bench
