#pragma once
// How a layer joins the first layer's values v1 to its own values v. A layer without a mixer keeps v.
//   static     v' = lambda1 v1 + lambda2 v                  ResFormer
//   selective  v' = v + alpha v1, alpha = gate(u Walpha)    SATFormer
// A mixer holds the parameters and says what mix it is (MixSpec); the arithmetic is ops::qk_norm_rope_mix on the fused
// path and ops::gated_value_mix or ATen on the plain one.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "satformer/nn/gates.h"
#include "satformer/nn/layer_context.h"
#include "satformer/nn/linear.h"

namespace satformer::nn {

// What a layer that mixes values gets from before it.
struct ValueResidual {
  at::Tensor first_values = {};  // v1 [B, T, H_kv, hd]: layer 0's values, raw
  at::Tensor lambda1 = {};       // []: this layer's entry of the model's; undefined where the mixer has its own or none
};

// A mix: selective with a gate, static without.
struct MixSpec {
  std::optional<Gate> gate = {};
  at::Tensor lambda1 = {}, lambda2 = {};  // [] of a static mix, float32 (float64 in a float64 model)
};

class ValueMixer : public torch::nn::Module {
 public:
  // The gate's projection, which reads what Wv reads; empty: no gate.
  virtual Linear gate_projection() { return Linear(nullptr); }
  virtual MixSpec spec(const ValueResidual& residual) const = 0;
};

struct StaticMixOptions {
  double lambda2 = 0.5;  // initial value
};

// lambda1 belongs to the model (a softmax over all layers); lambda2 [] to the layer.
class StaticMixerImpl : public ValueMixer {
 public:
  StaticMixerImpl(const StaticMixOptions& options, const at::TensorOptions& tensors);
  MixSpec spec(const ValueResidual& residual) const override;

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
  MixSpec spec(const ValueResidual& residual) const override;

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
  MixSpec spec(const ValueResidual& residual) const override;

  Linear alpha_proj{nullptr};  // Walpha [H_kv, d]

 private:
  Gate gate_;
};
TORCH_MODULE(SelectiveMixer);

// A layer's mix while it runs, on either path.
struct RunningMix {
  const MixSpec& spec;
  const at::Tensor& logits;        // [B, T, H_kv] of a selective mix, else undefined
  const at::Tensor& values;        // v [B, T, H_kv, hd]
  const at::Tensor& first_values;  // v1 [B, T, H_kv, hd]
};

// Shows the mix to the context's observer, where there is one.
void show_mix(const LayerContext& context, const RunningMix& mix);

// What takes the place of alpha (of lambda1 in a static mix) by the context's intervention, [B, T, H_kv]; undefined
// where there is none or it leaves alpha. Error where gradients are recorded.
at::Tensor intervened_weights(const LayerContext& context, const RunningMix& mix);

}  // namespace satformer::nn
