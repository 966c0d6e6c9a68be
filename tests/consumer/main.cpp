// Uses an installed satformer: the operator through the dispatcher, a model from its configuration, and its export.
//   consumer MODEL.pt     writes a model, and prints the six likeliest tokens after 3 1 4
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <cstdio>

#include "csrc/ops/gated_value_mix.h"
#include "satformer/exchange/torchscript.h"
#include "satformer/models/language_model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 3;
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
  satformer::exchange::export_torchscript(*model, argv[1]);
  const at::NoGradGuard no_grad;
  at::Tensor ids = at::tensor({3, 1, 4}, at::kLong).unsqueeze(0);
  for (int i = 0; i < 6; ++i) {
    const auto hidden = model->hidden_states({.input_ids = ids, .positions = {}, .document_ids = {}});
    const auto next = model->logits(hidden).select(1, -1).argmax(-1, /*keepdim=*/true);
    std::printf("%lld\n", static_cast<long long>(next.item<std::int64_t>()));
    ids = at::cat({ids, next}, 1);
  }
  return 0;
}
