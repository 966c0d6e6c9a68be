#pragma once
// How a layer joins the first layer's values v1 to its own values v. A layer without a mixer keeps v.
//   static     v' = lambda1 v1 + lambda2 v                  ResFormer
//   selective  v' = v + alpha v1, alpha = gate(u Walpha)    SATFormer
// A mixer holds the parameters; the arithmetic is part of ops::qk_norm_rope_mix.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "satformer/nn/gates.h"
#include "satformer/nn/linear.h"

namespace satformer::nn {

class ValueMixer : public torch::nn::Module {
 public:
  // The gate's projection, which reads what Wv reads; empty: no gate.
  virtual Linear gate_projection() { return Linear(nullptr); }
  // Sets gate, lambda1, lambda2. lambda1 []: this layer's entry of the model's, undefined where the mixer has its own.
  virtual void describe(ops::MixInputs& inputs, const at::Tensor& lambda1) const = 0;
};

struct StaticMixOptions {
  double lambda2 = 0.5;  // initial value
};

// lambda1 belongs to the model (a softmax over all layers); lambda2 [] to the layer.
class StaticMixerImpl : public ValueMixer {
 public:
  StaticMixerImpl(const StaticMixOptions& options, const at::TensorOptions& tensors);
  void describe(ops::MixInputs& inputs, const at::Tensor& lambda1) const override;

  at::Tensor lambda2;
};
TORCH_MODULE(StaticMixer);

struct FixedMixOptions {
  double lambda1 = 0.5;
  double lambda2 = 0.5;
};

// The original ResFormer paper's variants: constants, no parameters.
class FixedMixerImpl : public ValueMixer {
 public:
  explicit FixedMixerImpl(const FixedMixOptions& options) : options_(options) {}
  void describe(ops::MixInputs& inputs, const at::Tensor& lambda1) const override;

 private:
  FixedMixOptions options_;
};
TORCH_MODULE(FixedMixer);

struct SelectiveMixOptions {
  std::int64_t hidden_size = 0;
  std::int64_t num_kv_heads = 0;
  Gate gate = Gate::kRelu;
  bool bias = false;
};

class SelectiveMixerImpl : public ValueMixer {
 public:
  SelectiveMixerImpl(const SelectiveMixOptions& options, const at::TensorOptions& tensors);
  Linear gate_projection() override { return alpha_proj; }
  void describe(ops::MixInputs& inputs, const at::Tensor& lambda1) const override;

  Linear alpha_proj{nullptr};  // Walpha [H_kv, d]

 private:
  Gate gate_;
};
TORCH_MODULE(SelectiveMixer);

}  // namespace satformer::nn
