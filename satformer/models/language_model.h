#pragma once
// The base class of all architectures.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "satformer/models/model_config.h"
#include "satformer/nn/cross_entropy.h"
#include "satformer/nn/observer.h"

namespace satformer::models {

struct ModelInput {
  at::Tensor input_ids;       // int64 [B, T]
  at::Tensor positions = {};  // int64 [B, T] for RoPE; undefined: 0 .. T-1
  // int64 [B, T], on the CPU also for a model on a GPU; attention stays inside one id. Undefined: no document mask.
  at::Tensor document_ids = {};
};

using nn::kIgnoreIndex;  // -100: a target that does not count

// Sum, not mean, so that micro-batches add up to the step's token-weighted mean.
struct LossSum {
  at::Tensor loss_sum;  // float32 [], sum of -log softmax(logits)[target] over targets != kIgnoreIndex
  std::int64_t num_targets = 0;
};

class LanguageModel : public torch::nn::Module {
 public:
  const ModelConfig& config() const { return config_; }

  // Final norm's output [B, T, d].
  virtual at::Tensor hidden_states(const ModelInput& input, nn::Observer* observer = nullptr) = 0;
  // The head's weight W [V, d].
  virtual at::Tensor head_weight() const = 0;
  // h W^T [B, T, V] from hidden states.
  at::Tensor logits(const at::Tensor& hidden) const;
  // targets: int64 [B, T], targets[b, t] is what position t predicts; on the CPU, where counting them waits for no GPU,
  // or on the model's device. Fused, the logits of the whole batch never exist.
  LossSum loss(const ModelInput& input, const at::Tensor& targets, nn::Observer* observer = nullptr);
  // The same without the count: waits for nothing.
  at::Tensor loss_sum(const ModelInput& input, const at::Tensor& targets, nn::Observer* observer = nullptr);

  // Recompute each block in the backward pass instead of keeping its activations: the same gradients bit for bit.
  // A pass with an observer keeps them.
  void set_activation_checkpointing(bool on) { activation_checkpointing_ = on; }
  bool activation_checkpointing() const { return activation_checkpointing_; }

  // Which path computes (nn::LayerContext): fused, for speed, or plain, for reading, debugging and second derivatives.
  void set_fused(bool on) { fused_ = on; }
  bool fused() const { return fused_; }

  std::int64_t num_parameters();

  // Names of the parameters that weight decay acts on: the matrices of linear layers that say so (nn::LinearOptions).
  std::set<std::string> decayed_parameters() const;

  // Standard deviation of a linear or embedding weight at the start: initializer_range unless the architecture says
  // otherwise. `name` is the checkpoint's.
  virtual double initial_std(std::string_view name) const;

 protected:
  explicit LanguageModel(ModelConfig config) : config_(std::move(config)) {}

 private:
  ModelConfig config_;
  bool activation_checkpointing_ = false;
  bool fused_ = true;
};

// Targets that are not kIgnoreIndex.
std::int64_t count_targets(const at::Tensor& targets);

// targets[b, t] = labels[b, t + 1], the last column kIgnoreIndex: the published convention (labels = input ids).
at::Tensor shift_labels(const at::Tensor& labels);

// The model of config.architecture with freshly initialised float32 parameters on the CPU: linear and embedding
// weights N(0, initial_std^2), biases 0, norm weights 1, what else an architecture has as its class says. The same seed
// gives the same parameters everywhere, and a parameter's values depend on the seed and its name alone: architectures
// start alike in what they share.
std::shared_ptr<LanguageModel> make_model(const ModelConfig& config, std::uint64_t seed);

// The same model whose linear and embedding weights are not set yet: to be loaded, or, on the meta device, to be
// counted without memory.
std::shared_ptr<LanguageModel> make_uninitialized_model(const ModelConfig& config,
                                                        c10::Device device = c10::Device(c10::kCPU));

}  // namespace satformer::models
