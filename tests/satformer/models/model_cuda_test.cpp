// Whole models on a GPU under bfloat16 autocast, against the CPU in float32. Names end in _CUDA for scripts/gpu_check.
#include <ATen/ATen.h>

#include <utility>

#include "satformer/models/architectures.h"
#include "satformer/runtime/precision.h"
#include "tests/csrc/cuda_support.h"
#include "tests/satformer/models/model_testing.h"

#include "tests/catch.h"

namespace satformer {

using models::ModelConfig;
using models::ModelInput;
using namespace testing;

namespace {

double difference_from(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.cpu().to(at::kDouble), y = b.to(at::kDouble);
  return ((x - y).norm() / (y.norm() + 1e-12)).item<double>();
}

}  // namespace

// Fused, the documents of document_input() go to flash attention one by one there, and through a mask here.
TEST_CASE("model_CUDA: losses and gradients, documents and windows", "[models][cuda]") {
  if (!tests::has_cuda()) return;
  for (const models::Architecture& architecture : models::architectures()) {
    for (const auto& [windowed, fused] : {std::pair{false, true}, {true, true}, {false, false}, {true, false}}) {
      INFO(architecture.name << (windowed ? ", windowed" : "") << (fused ? "" : ", plain"));
      nlohmann::json keys = {{"hidden_size", 64}, {"num_kv_heads", 2}, {"value_residual_gate", "sigmoid"}};
      if (windowed) keys["window_size"] = 3;
      const ModelConfig config = small_config(architecture.name, keys);
      const auto single = random_model(config, at::kFloat), mixed = random_model(config, at::kFloat);
      mixed->to(at::kCUDA);
      mixed->set_fused(fused);
      const ModelInput input = document_input(config);
      const ModelInput there{input.input_ids.cuda(), input.positions.defined() ? input.positions.cuda() : at::Tensor(),
                             input.document_ids};
      const at::Tensor targets = models::shift_labels(input.input_ids);
      const models::LossSum expected = single->loss(input, targets);
      expected.loss_sum.backward();
      models::LossSum found;
      {
        const AutocastGuard autocast(c10::Device(c10::kCUDA), at::kBFloat16);
        found = mixed->loss(there, targets);
      }
      found.loss_sum.backward();
      CHECK(found.num_targets == expected.num_targets);
      CHECK(difference_from(found.loss_sum, expected.loss_sum) < 0.02);  // bfloat16: 2^-8 a rounding
      for (const auto& parameter : single->named_parameters()) {
        INFO(parameter.key());
        const at::Tensor& gradient = mixed->named_parameters()[parameter.key()].grad();
        REQUIRE(gradient.defined() == parameter.value().grad().defined());
        if (gradient.defined()) CHECK(difference_from(gradient, parameter.value().grad()) < 0.1);
      }
    }
  }
}

}  // namespace satformer
