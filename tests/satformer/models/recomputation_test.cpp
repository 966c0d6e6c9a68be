// Activation checkpointing and bfloat16 autocast, alone and together, in whole models.
#include <ATen/ATen.h>

#include <cmath>

#include "satformer/models/architectures.h"
#include "satformer/runtime/precision.h"
#include "tests/satformer/models/model_testing.h"

#include "tests/catch.h"

namespace satformer {

using models::ModelConfig;
using models::ModelInput;
using namespace testing;

TEST_CASE("activation checkpointing changes no bit", "[models][checkpointing]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const ModelInput input = document_input(config);
    const at::Tensor targets = models::shift_labels(input.input_ids);
    const auto plain = random_model(config, at::kFloat), again = random_model(config, at::kFloat);
    again->set_activation_checkpointing(true);
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {  // gradients accumulate as well
      const models::LossSum a = plain->loss(input, targets), b = again->loss(input, targets);
      CHECK(at::equal(a.loss_sum, b.loss_sum));
      a.loss_sum.backward();
      b.loss_sum.backward();
    }
    for (const auto& parameter : plain->named_parameters()) {
      INFO(parameter.key());
      const at::Tensor& a = parameter.value().grad();
      const at::Tensor& b = again->named_parameters()[parameter.key()].grad();
      REQUIRE(a.defined() == b.defined());
      if (a.defined()) CHECK(at::equal(a, b));
    }
  }
}

TEST_CASE("bfloat16 autocast", "[models][checkpointing]") {
  for (const models::Architecture& architecture : models::architectures()) {
    INFO(architecture.name);
    // A smooth gate: where rounding opens or closes a ReLU its gradient jumps.
    const ModelConfig config =
        small_config(architecture.name, {{"num_kv_heads", 2}, {"value_residual_gate", "sigmoid"}});
    const ModelInput input = document_input(config);
    const at::Tensor targets = models::shift_labels(input.input_ids);
    const auto single = random_model(config, at::kFloat), mixed = random_model(config, at::kFloat);
    const auto again = random_model(config, at::kFloat);
    again->set_activation_checkpointing(true);
    const models::LossSum expected = single->loss(input, targets);
    expected.loss_sum.backward();
    models::LossSum found, recomputed;
    {
      const AutocastGuard autocast(c10::Device(c10::kCPU), at::kBFloat16);
      found = mixed->loss(input, targets);
      CHECK(mixed->logits(mixed->hidden_states(input)).scalar_type() == at::kBFloat16);
    }
    {
      const AutocastGuard autocast(c10::Device(c10::kCPU), at::kBFloat16);
      recomputed = again->loss(input, targets);
    }
    found.loss_sum.backward();
    recomputed.loss_sum.backward();
    CHECK(found.loss_sum.scalar_type() == at::kFloat);
    CHECK(found.loss_sum.item<double>() == Approx(expected.loss_sum.item<double>()).epsilon(0.05));
    CHECK(at::equal(found.loss_sum, recomputed.loss_sum));
    double difference = 0, size = 0;
    const auto exact = single->named_parameters(), other = again->named_parameters();
    for (const auto& item : mixed->named_parameters()) {
      INFO(item.key());
      const at::Tensor& gradient = item.value().grad();
      CHECK(gradient.scalar_type() == at::kFloat);
      CHECK(at::equal(gradient, other[item.key()].grad()));
      const at::Tensor& wanted = exact[item.key()].grad();
      difference += (gradient - wanted).square().sum().item<double>();
      size += wanted.square().sum().item<double>();
    }
    CHECK(std::sqrt(difference / size) < 0.15);  // about 30 roundings to 8 bits one after the other
  }
}

}  // namespace satformer
