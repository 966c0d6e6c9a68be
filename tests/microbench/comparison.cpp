#include "tests/microbench/comparison.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

namespace satformer::microbench {
namespace {

void forward(benchmark::State& state, const Tensors& inputs, const Function& function, std::size_t /*constants*/) {
  const at::NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(function(inputs));
}

void both(benchmark::State& state, const Tensors& inputs, const Function& function, std::size_t constants) {
  Tensors leaves(inputs.begin(), inputs.end() - static_cast<std::ptrdiff_t>(constants)), arguments = inputs, grads;
  for (std::size_t i = 0; i < leaves.size(); ++i) arguments[i] = leaves[i] = inputs[i].detach().requires_grad_();
  for (const at::Tensor& out : function(inputs)) grads.push_back(at::ones_like(out));
  for (auto _ : state) benchmark::DoNotOptimize(torch::autograd::grad(function(arguments), leaves, grads));
}

using Loop = void (*)(benchmark::State&, const Tensors&, const Function&, std::size_t constants);

void add(const std::string& name, const Comparison& comparison, const Function& function, Loop loop) {
  const auto run = [loop, function, make_inputs = comparison.make_inputs, constants = comparison.constants](
                       benchmark::State& state) { loop(state, make_inputs(), function, constants); };
  benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

}  // namespace

bool compare(const Comparison& c) {
  for (const auto& [name, loop] : {std::pair<const char*, Loop>{"/forward", forward}, {"/both", both}}) {
    add(c.name + name + "/operator", c, c.by_operator, loop);
    add(c.name + name + "/composite", c, c.by_composite, loop);
  }
  return true;
}

at::Tensor normal(at::IntArrayRef sizes, at::ScalarType dtype) { return at::randn(sizes, dtype); }

std::string name_of(at::ScalarType dtype) { return dtype == at::kBFloat16 ? "bfloat16" : "float32"; }

}  // namespace satformer::microbench
