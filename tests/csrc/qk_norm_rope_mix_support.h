#pragma once
// What the tests of qk_norm_rope_mix share: inputs of every size, layout, dtype and mix, and what their arithmetic
// errors are relative to. Tolerances: tests/support/tolerances.h.
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <string>
#include <vector>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "csrc/ops/qk_norm_rope_mix_checks.h"
#include "csrc/ops/qk_norm_rope_mix_reference.h"
#include "tests/csrc/gated_value_mix_support.h"
#include "tests/csrc/struct_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::attention {

using tests::to_double;

struct Sizes {
  std::int64_t B, T, H, H_kv, hd;
};

enum class Memory {
  kSeparate,     // contiguous tensors
  kPacked,       // q, k, v and logits are slices of one projection, first_values of another; so are the gradients
  kHeadsFirst,   // [B, heads, T, hd] transposed
  kExpandFirst,  // contiguous; first_values [1, 1, H_kv, hd] expanded over batch and tokens
};

struct Case {
  Sizes sizes{2, 5, 6, 2, 16};
  at::ScalarType dtype = at::kFloat;
  at::ScalarType logits_dtype = at::kFloat;
  ops::ValueMix mix = ops::ValueMix::kSelective;
  ops::Gate gate = ops::Gate::kRelu;
  Memory memory = Memory::kPacked;
  bool norm = true;
  bool tables_by_row = false;  // [B, T, 1, hd/2]
  std::string text() const;    // for failure messages
};

struct Inputs {
  ops::MixInputs in;
  ops::MixOutputs grads;            // of q', k', v'; [B, heads, T, hd] transposed, as attention returns them
  ops::MixGradientTargets targets;  // filled with NaN; with packed memory slices of one tensor
};

// Standard normal numbers, the same for the same seed. copy_values is set.
Inputs make_inputs(const Case& c, std::uint64_t seed);
// The tensors of `in` that are differentiable, in the order q, k, v, q_weight, k_weight, first_values, logits, lambda1,
// lambda2; undefined ones are left out.
std::vector<at::Tensor> differentiable(const ops::MixInputs& in);
// These tensors, memory layout included, as leaves that require grad; the tables as they are.
ops::MixInputs leaves(const ops::MixInputs& in);
// In the order of differentiable(); of v only where v' was written.
std::vector<at::Tensor> in_order(const ops::MixInputs& in, const ops::AllMixGradients& gradients);

// Sums of the magnitudes of the terms, from float64 inputs.
ops::MixOutputs magnitudes(const ops::MixInputs& d);
ops::AllMixGradients gradient_magnitudes(const ops::MixInputs& d, const ops::MixOutputs& grads);

// Roundings in a row beyond a few: its sum of squares, and in the backward pass another sum over hd.
inline double row_ulps(std::int64_t hd) { return kArithmeticUlps + 2 * static_cast<double>(hd); }

// Roundings of each gradient, in the order of differentiable(): those of a row, and one for each row of a sum.
std::vector<double> gradient_ulps(const ops::MixInputs& in);

inline const std::vector<ops::ValueMix> kAllMixes{ops::ValueMix::kNone, ops::ValueMix::kSelective,
                                                  ops::ValueMix::kStatic};

// The first line of the error that `call` throws; empty when it throws none.
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

}  // namespace satformer::tests::attention
