#pragma once
// What a model shows of its inside while it runs. Models call the observer they are given and carry no analysis code.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace satformer::nn {

// One layer's selective value mix: v' = v + alpha v1.
struct GateObservation {
  const at::Tensor& logits;        // [B, T, H_kv]
  const at::Tensor& alpha;         // [B, T, H_kv], gate(logits)
  const at::Tensor& values;        // [B, T, H_kv, hd], before the mix
  const at::Tensor& first_values;  // [B, T, H_kv, hd]
};

// One layer's static value mix: v' = lambda1 v1 + lambda2 v.
struct StaticMixObservation {
  const at::Tensor& lambda1;       // []
  const at::Tensor& lambda2;       // []
  const at::Tensor& values;        // [B, T, H_kv, hd], before the mix
  const at::Tensor& first_values;  // [B, T, H_kv, hd]
};

// The weights with which what follows a block reads the embedding (source 0) and the blocks' outputs (sources 1, 2,
// ..).
struct DepthWeightsObservation {
  const at::Tensor& weights;      // [C, S], or [B, T, C, S] where they depend on the token; C ways of reading
  std::int64_t first_source = 0;  // the sources are first_source, first_source + stride, ...
  std::int64_t stride = 1;
};

// A module's hyper-connection: its input is the first column of A over the streams, A's other columns carry them on,
// and its output is added with beta.
struct HyperConnectionObservation {
  const at::Tensor& alpha;  // A [B, T, n, n + 1]
  const at::Tensor& beta;   // [B, T, n]
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Output of block `layer` [B, T, d].
  virtual void hidden(std::int64_t layer, const at::Tensor& value) { (void)layer, (void)value; }
  virtual void gates(std::int64_t layer, const GateObservation& observation) { (void)layer, (void)observation; }
  virtual void static_mix(std::int64_t layer, const StaticMixObservation& observation) {
    (void)layer, (void)observation;
  }
  virtual void depth_weights(std::int64_t layer, const DepthWeightsObservation& observation) {
    (void)layer, (void)observation;
  }
  // `module` counts attention and MLP modules: 2 layer and 2 layer + 1.
  virtual void hyper_connection(std::int64_t module, const HyperConnectionObservation& observation) {
    (void)module, (void)observation;
  }
  // Anything else by name: "final_norm", "lambda1".
  virtual void named(const std::string& name, const at::Tensor& value) { (void)name, (void)value; }
};

}  // namespace satformer::nn
