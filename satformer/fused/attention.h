#pragma once
// Attention of a training step as one autograd node: from the projections of queries, keys, values and gate logits to
// attention's output.
//
//   q, k = RoPE(qk-norm(q)), RoPE(qk-norm(k));  v' = value mix of v and v1      ops::qk_norm_rope_mix, one pass
//   attended = softmax(q k^T / sqrt(hd) + mask) v'                              one of the backends below
//
// What it keeps is the projections, which every product's backward pass needs in any case, and on the CPU the output
// and a number a query; rotated queries and keys and mixed values are made again in the backward pass. The gradients of
// the projections are written side by side, as one product made them. The gradient of v1 is added to its buffer
// (shared_gradient.h). Differentiable once.
//
// Backends, by device, dtype and mask: attention_ours.h (CPU, float32 and float64, causal), attention_libtorch.h (CPU
// in the rest; other devices), attention_documents.h (CUDA, documents without a mask).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "satformer/fused/attention_context.h"

namespace satformer::fused {

struct AttentionCall {
  std::int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  // The projections side by side: [B, T, (H + 2 H_kv) hd + gates], or three tensors [B, T, H hd], [B, T, H_kv hd] and
  // [B, T, H_kv hd + gates]. Gates: H_kv with a selective mix, else 0.
  std::vector<at::Tensor> projected = {};
  bool selective = false;
  // The norms' weights and eps, first_values, gate and lambdas; the rest follows from `projected` and `context`.
  ops::MixInputs mix = {};
  AttentionContext context = {};
  bool returns_values = false;
};

struct AttentionResult {
  at::Tensor attended;  // [B, T, H hd]
  at::Tensor values;    // with returns_values: [B, T, H_kv, hd], raw
};

AttentionResult attention(const AttentionCall& call);

// call.mix with everything set: q, k, v and logits are views of call.projected.
ops::MixInputs mix_inputs(const AttentionCall& call);

}  // namespace satformer::fused
