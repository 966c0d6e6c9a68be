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

class Observer {
 public:
  virtual ~Observer() = default;
  // Output of block `layer` [B, T, d].
  virtual void hidden(std::int64_t layer, const at::Tensor& value) { (void)layer, (void)value; }
  virtual void gates(std::int64_t layer, const GateObservation& observation) { (void)layer, (void)observation; }
  // Anything else by name: "final_norm", "lambda1".
  virtual void named(const std::string& name, const at::Tensor& value) { (void)name, (void)value; }
};

}  // namespace satformer::nn
