#pragma once
// How a layer joins the first layer's values v1 to its own values v. A layer without a mixer keeps v.
//   static     v' = lambda1 v1 + lambda2 v                  ResFormer
//   selective  v' = v + alpha v1, alpha = gate(u Walpha)    SATFormer
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>

#include "satformer/nn/gates.h"
#include "satformer/nn/linear.h"
#include "satformer/nn/observer.h"

namespace satformer::nn {

struct ValueMixInput {
  const at::Tensor& values;        // v [B, T, H_kv, hd], raw: after Wv, before anything else
  const at::Tensor& first_values;  // v1 [B, T, H_kv, hd], the raw values of layer 0
  const at::Tensor& hidden;        // u [B, T, d], what Wv read
  const at::Tensor& lambda1;  // [], this layer's entry of the model's lambda1; undefined where the mixer has its own
  std::int64_t layer = 0;
  Observer* observer = nullptr;
};

class ValueMixer : public torch::nn::Module {
 public:
  // v' [B, T, H_kv, hd]
  virtual at::Tensor forward(const ValueMixInput& input) = 0;
};

struct StaticMixOptions {
  double lambda2 = 0.5;  // initial value
};

// lambda1 belongs to the model (a softmax over all layers); lambda2 [] to the layer.
class StaticMixerImpl : public ValueMixer {
 public:
  StaticMixerImpl(const StaticMixOptions& options, const at::TensorOptions& tensors);
  at::Tensor forward(const ValueMixInput& input) override;

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
  at::Tensor forward(const ValueMixInput& input) override;

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
  at::Tensor forward(const ValueMixInput& input) override;

  Linear alpha_proj{nullptr};  // Walpha [H_kv, d]

 private:
  Gate gate_;
};
TORCH_MODULE(SelectiveMixer);

}  // namespace satformer::nn
