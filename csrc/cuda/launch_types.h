#pragma once
// What the tensor sides of the CUDA operators hand to their launchers: no torch headers. Strides count elements.
#include <cstdint>

#include "csrc/ops/gate.h"

namespace satformer::ops::cuda {

enum class DType { kFloat32, kBFloat16, kFloat16, kFloat64 };

struct Sizes {
  int64_t B, T, H, hd;
};
struct Strides {
  int64_t b, t, h;
};

// [B, T, H] numbers of any dtype; data null: absent.
struct GateSource {
  const void* data;
  DType dtype;
  Strides strides;
};

// [B, T, heads, hd] values, contiguous in hd; data null: absent.
struct Source {
  const void* data;
  Strides strides;
};
struct Target {
  void* data;
  Strides strides;
};

// Whether the gate's derivative mixes the heads of a token.
inline bool is_over_heads(Gate gate) { return gate == Gate::kSoftmax || gate == Gate::kSoftmaxSigmoid; }

}  // namespace satformer::ops::cuda
