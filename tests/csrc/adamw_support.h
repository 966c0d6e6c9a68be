#pragma once
// What the tests of adamw_ share: inputs of every dtype and size, and the comparison with the composite definition in
// float64. Tolerances: tests/csrc/gated_value_mix_support.h.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/ops/adamw.h"

namespace satformer::tests::adamw {

using Sizes = std::vector<std::int64_t>;

struct Dtypes {
  at::ScalarType parameter, gradient, exp_avg, exp_avg_sq;
  std::string text() const;
};
// Every dtype of parameters with every state it may have, and gradients of its own and other dtypes.
extern const std::vector<Dtypes> kAllDtypes;

struct Inputs {
  ops::AdamWTensors tensors;
  std::vector<std::int64_t> steps;
};

// Normal numbers (exp_avg_sqs: their squares), the same for the same seed, one parameter for each of `sizes`; the
// steps differ. `exp_avg` and `exp_avg_sq` are 0 where the step is 1.
Inputs make_inputs(const std::vector<Sizes>& sizes, const Dtypes& dtypes, std::uint64_t seed);
// Appends the parameters of `more`; the gradient factor stays.
void append(Inputs& inputs, const Inputs& more);
// Tensors of their own with the same numbers and strides.
Inputs copy_of(const Inputs& inputs);
// The same numbers, memory layout included, on the GPU.
Inputs on_cuda(const Inputs& inputs);

inline constexpr ops::AdamWSettings kSettings{
    .lr = 3e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};

// The largest error of parameters and state in units of what is allowed (worst_error), where `got` is what the
// operator made of `before`. Infinite where gradients or the factor changed.
double worst_update_error(const Inputs& before, const Inputs& got, const ops::AdamWSettings& settings);

}  // namespace satformer::tests::adamw
