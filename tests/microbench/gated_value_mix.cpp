// gated_value_mix against its composite, at sizes of training: batch, tokens, KV heads, head dimension.
#include "csrc/ops/gated_value_mix.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <benchmark/benchmark.h>

#include <array>

#include "csrc/ops/gated_value_mix_reference.h"

namespace {

using satformer::ops::Gate;

struct Inputs {
  explicit Inputs(const benchmark::State& state, at::ScalarType dtype)
      : v(at::randn({state.range(0), state.range(1), state.range(2), state.range(3)}, dtype)),
        first_values(at::randn_like(v)),
        logits(at::randn({state.range(0), state.range(1), state.range(2)}, dtype)) {}

  at::Tensor v, first_values, logits;
};

// Bytes that must move at least: `passes` times a tensor of v's size.
void count_bytes(benchmark::State& state, const at::Tensor& v, std::int64_t passes) {
  state.SetBytesProcessed(state.iterations() * passes * v.numel() * v.element_size());
}

template <typename Function>
void forward(benchmark::State& state, at::ScalarType dtype, const Function& mix) {
  const Inputs inputs(state, dtype);
  for (auto _ : state) benchmark::DoNotOptimize(mix(inputs));
  count_bytes(state, inputs.v, 3);
}

template <typename Function>
void backward(benchmark::State& state, at::ScalarType dtype, const Function& gradients) {
  const Inputs inputs(state, dtype);
  const at::Tensor gradient = at::randn_like(inputs.v);
  for (auto _ : state) benchmark::DoNotOptimize(gradients(inputs, gradient));
  count_bytes(state, inputs.v, 3);
}

constexpr std::array<bool, 4> kGradients{true, true, false, false};

void forward_operator(benchmark::State& state, at::ScalarType dtype) {
  forward(state, dtype, [](const Inputs& inputs) {
    return satformer::ops::gated_value_mix(inputs.v, inputs.first_values, inputs.logits, Gate::kRelu);
  });
}

void forward_composite(benchmark::State& state, at::ScalarType dtype) {
  forward(state, dtype, [](const Inputs& inputs) {
    return satformer::ops::gated_value_mix_reference(inputs.v, inputs.first_values, inputs.logits, Gate::kRelu);
  });
}

void backward_operator(benchmark::State& state, at::ScalarType dtype) {
  backward(state, dtype, [](const Inputs& inputs, const at::Tensor& gradient) {
    return satformer::ops::gated_value_mix_backward(gradient, inputs.first_values, inputs.logits, Gate::kRelu, {}, {},
                                                    kGradients);
  });
}

void backward_composite(benchmark::State& state, at::ScalarType dtype) {
  backward(state, dtype, [](const Inputs& inputs, const at::Tensor& gradient) {
    return satformer::ops::gated_value_mix_backward_reference(gradient, inputs.first_values, inputs.logits, Gate::kRelu,
                                                              {}, {}, kGradients);
  });
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({4, 256, 4, 64})->Args({4, 512, 12, 64})->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK_CAPTURE(forward_operator, gated_value_mix_float32, at::kFloat)->Apply(sizes);
BENCHMARK_CAPTURE(forward_composite, gated_value_mix_float32, at::kFloat)->Apply(sizes);
BENCHMARK_CAPTURE(backward_operator, gated_value_mix_float32, at::kFloat)->Apply(sizes);
BENCHMARK_CAPTURE(backward_composite, gated_value_mix_float32, at::kFloat)->Apply(sizes);
BENCHMARK_CAPTURE(forward_operator, gated_value_mix_bfloat16, at::kBFloat16)->Apply(sizes);
BENCHMARK_CAPTURE(forward_composite, gated_value_mix_bfloat16, at::kBFloat16)->Apply(sizes);

}  // namespace
