// The optimiser's operators against PyTorch's: 60 tensors, together 8 million numbers.
#include "csrc/ops/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <benchmark/benchmark.h>

#include "csrc/ops/adamw_reference.h"
#include "csrc/ops/sum_of_squares.h"

namespace {

constexpr std::int64_t kTensors = 60, kNumbers = 8'000'000;
constexpr satformer::ops::AdamWSettings kSettings{
    .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};

// Two thirds of the tensors are vectors of 256, the others share what is left.
satformer::ops::AdamWTensors make_tensors(at::ScalarType dtype) {
  satformer::ops::AdamWTensors tensors;
  tensors.gradient_factor = at::full({}, 0.5, at::kFloat);
  constexpr std::int64_t kSmall = 256, kLarge = (kNumbers - 40 * kSmall) / (kTensors - 40);
  for (std::int64_t i = 0; i < kTensors; ++i) {
    const at::Tensor parameter = at::randn({i % 3 == 0 ? kLarge : kSmall}, dtype);
    tensors.parameters.push_back(parameter);
    tensors.gradients.push_back(at::randn(parameter.sizes(), dtype));
    tensors.exp_avgs.push_back(at::zeros_like(parameter));
    tensors.exp_avg_sqs.push_back(at::zeros_like(parameter));
  }
  return tensors;
}

// Items a second are numbers a second.
template <typename Function>
void run(benchmark::State& state, at::ScalarType dtype, const Function& function) {
  const at::NoGradGuard no_grad;
  const satformer::ops::AdamWTensors tensors = make_tensors(dtype);
  for (auto _ : state) function(tensors);
  state.SetItemsProcessed(state.iterations() * kNumbers);
}

void update_operator(benchmark::State& state, at::ScalarType dtype) {
  const std::vector<std::int64_t> steps(kTensors, 3);
  run(state, dtype, [&](const auto& tensors) { satformer::ops::adamw_(tensors, kSettings, steps); });
}

void update_pytorch(benchmark::State& state, at::ScalarType dtype) {
  const std::vector<at::Tensor> steps(kTensors, at::full({}, 3.0, at::kFloat));
  run(state, dtype, [&](const satformer::ops::AdamWTensors& t) {
    at::_fused_adamw_(t.parameters, t.gradients, t.exp_avgs, t.exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps, kSettings.lr,
                      kSettings.beta1, kSettings.beta2, kSettings.weight_decay, kSettings.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  });
}

void update_composite(benchmark::State& state, at::ScalarType dtype) {
  const std::vector<std::int64_t> steps(kTensors, 3);
  run(state, dtype, [&](const auto& tensors) { satformer::ops::adamw_reference_(tensors, kSettings, steps); });
}

void norm_operator(benchmark::State& state, at::ScalarType dtype) {
  run(state, dtype, [](const satformer::ops::AdamWTensors& tensors) {
    benchmark::DoNotOptimize(satformer::ops::sum_of_squares(tensors.gradients));
  });
}

void norm_pytorch(benchmark::State& state, at::ScalarType dtype) {
  run(state, dtype, [](const satformer::ops::AdamWTensors& tensors) {
    benchmark::DoNotOptimize(at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors.gradients, 2)), 2));
  });
}

void timing(benchmark::internal::Benchmark* benchmark) { benchmark->Unit(benchmark::kMillisecond)->UseRealTime(); }

BENCHMARK_CAPTURE(update_operator, adamw_float32, at::kFloat)->Apply(timing);
BENCHMARK_CAPTURE(update_pytorch, adamw_float32, at::kFloat)->Apply(timing);
BENCHMARK_CAPTURE(update_composite, adamw_float32, at::kFloat)->Apply(timing);
BENCHMARK_CAPTURE(update_operator, adamw_bfloat16, at::kBFloat16)->Apply(timing);
BENCHMARK_CAPTURE(update_pytorch, adamw_bfloat16, at::kBFloat16)->Apply(timing);
BENCHMARK_CAPTURE(norm_operator, sum_of_squares_float32, at::kFloat)->Apply(timing);
BENCHMARK_CAPTURE(norm_pytorch, sum_of_squares_float32, at::kFloat)->Apply(timing);
BENCHMARK_CAPTURE(norm_operator, sum_of_squares_bfloat16, at::kBFloat16)->Apply(timing);

}  // namespace
