#pragma once
// SATFormer.
#include "satformer/models/decoder.h"

namespace satformer::models {

// Selective value residual: a gate for each token and KV head on the first layer's values. With v1 the raw values of
// layer 0 and u the normalised input of the block's attention, in every layer i >= 1 that mixes:
//   alpha = gate(u Walpha)                        [B, T, H_kv]
//   v'[b, t, j, :] = v[b, t, j, :] + alpha[b, t, j] v1[b, t, j, :]
// Gradients flow through v1 into layer 0.
class SATFormer : public ResidualDecoder {
 public:
  SATFormer(const ModelConfig& config, const c10::TensorOptions& tensors);
};

}  // namespace satformer::models
