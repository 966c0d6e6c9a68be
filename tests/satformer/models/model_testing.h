#pragma once
// Helpers of the model tests: small models with random parameters, and the same models written out step by step in
// plain float64 ATen calls, without any code of the library.
#include <map>
#include <string>
#include <vector>

#include "satformer/models/language_model.h"

namespace satformer::testing {

using Parameters = std::map<std::string, at::Tensor>;

// "satformer" and so on with d 16, L 4, H 4, V 13, qk-norm, tied: overridden by `keys`.
models::ModelConfig small_config(const std::string& architecture, const nlohmann::json& keys = {});

struct NamedConfig {
  const char* name;
  const char* architecture;
  nlohmann::json keys;
};

// Every gate, bias, window, grouping, variant and edge case.
const std::vector<NamedConfig>& configurations();

// A model whose every parameter is random: nothing is trivially 0 or 1.
std::shared_ptr<models::LanguageModel> random_model(const models::ModelConfig& config, at::ScalarType dtype,
                                                    std::uint64_t seed = 7);

at::Tensor random_ids(const models::ModelConfig& config, std::int64_t batch, std::int64_t length,
                      std::uint64_t seed = 11);

// Random ids [2, length].
models::ModelInput plain_input(const models::ModelConfig& config, std::int64_t length = 11);

// Two documents in the first row, three in the second; positions start again in each.
models::ModelInput document_input(const models::ModelConfig& config);

// Detached copies in float64 that require gradients.
Parameters double_parameters(models::LanguageModel& model);

struct ExpectedPass {
  at::Tensor hidden;               // final norm's output
  at::Tensor logits;               // [B, T, V]
  std::vector<at::Tensor> alpha;   // of each SATFormer layer that mixes
  std::vector<at::Tensor> layers;  // output of each block
};

// What the model computes according to docs/architectures.md, differentiable.
ExpectedPass expected_pass(const models::ModelConfig& config, const Parameters& parameters,
                           const models::ModelInput& input);

// Sum of -log softmax over targets != -100.
at::Tensor expected_loss_sum(const at::Tensor& logits, const at::Tensor& targets);

// max |a - b| / max |b|; 0 where both are 0.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace satformer::testing
