#pragma once
// What the operator's tests share: inputs of every size and layout. Tolerances: tests/support/tolerances.h.
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/ops/gate.h"
#include "tests/support/tolerances.h"

namespace satformer::tests {

struct MixSizes {
  std::int64_t B, T, H, hd;
};

enum class Layout {
  kContiguous,
  kPackedSlice,    // v: the last third of a packed projection; first_values: the middle third
  kHeadsFirst,     // both: [B, H, T, hd] transposed to [B, T, H, hd]
  kExpandedFirst,  // first_values: [1, 1, H, hd] expanded over batch and tokens
  kStridedLogits,  // logits: every second column of a wider matrix
};

// Kind of scale or shift: how it broadcasts to [B, T, H].
enum class Broadcast { kNone, kScalar, kHeads, kTokens, kFull };

struct MixCase {
  MixSizes sizes{2, 5, 4, 16};
  at::ScalarType dtype = at::kFloat;
  at::ScalarType logits_dtype = at::kFloat;
  ops::Gate gate = ops::Gate::kRelu;
  Layout layout = Layout::kContiguous;
  Broadcast scale = Broadcast::kNone;
  Broadcast shift = Broadcast::kNone;
  at::ScalarType intervention_dtype = at::kFloat;
  std::string text() const;  // for failure messages
};

struct MixInputs {
  at::Tensor v, first_values, logits;
  std::optional<at::Tensor> scale, shift;
  at::Tensor grad = {};  // of v'

  // The tensors with a gradient, in the order of the gradients.
  static constexpr auto fields() {
    using In = MixInputs;
    return std::tuple{&In::v, &In::first_values, &In::logits, &In::scale, &In::shift};
  }
};

// Standard normal numbers, the same for the same seed.
MixInputs make_inputs(const MixCase& test_case, std::uint64_t seed);
// The same numbers in float64, contiguous where the case is.
MixInputs to_double(const MixInputs& inputs);

// What the arithmetic errors are relative to, from inputs in float64: of v', |v| + (|scale| |alpha| + |shift|) |v1|; of
// the gradients, in the order v, first_values, logits and, where given, scale and shift.
at::Tensor mix_magnitude(const MixInputs& in, ops::Gate gate);
std::vector<at::Tensor> gradient_magnitudes(const MixInputs& in, ops::Gate gate);

extern const std::array<ops::Gate, 6> kAllGates;
// Every dtype of the values with every dtype that the logits may have beside it.
extern const std::array<std::pair<at::ScalarType, at::ScalarType>, 7> kDtypes;

}  // namespace satformer::tests
