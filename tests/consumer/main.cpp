// Uses an installed satformer: the operator through the dispatcher, and a model from its configuration.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>

#include <cstdio>

#include "csrc/ops/gated_value_mix.h"
#include "satformer/models/language_model.h"

int main() {
  if (!c10::Dispatcher::singleton().findSchema({"satformer::gated_value_mix", ""})) return 1;
  const auto ones = at::ones({1, 2, 3, 4});
  const auto mixed = satformer::ops::gated_value_mix(ones, ones, at::ones({1, 2, 3}), satformer::ops::Gate::kRelu);
  if (mixed.sum().item<double>() != 48.0) return 2;

  satformer::models::ModelConfig config;
  config.architecture = "satformer";
  config.vocab_size = 16;
  config.hidden_size = 8;
  config.num_hidden_layers = 2;
  config.num_heads = config.num_kv_heads = 2;
  config.intermediate_size = 16;
  const auto model = satformer::models::make_model(config, 1);
  const auto ids = at::randint(16, {1, 5}, at::kLong);
  const auto hidden = model->hidden_states({.input_ids = ids, .positions = {}, .document_ids = {}});
  std::printf("%ld parameters, hidden states [%ld, %ld, %ld]\n", static_cast<long>(model->num_parameters()),
              static_cast<long>(hidden.size(0)), static_cast<long>(hidden.size(1)), static_cast<long>(hidden.size(2)));
  return 0;
}
