#pragma once
// What all layers of one forward pass share: the rotation of each position, and who attends to whom.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "satformer/nn/rotary.h"

namespace satformer::nn {

struct SequenceOptions {
  std::int64_t head_dim = 0;
  double rope_theta = 10000.0;
  std::optional<std::int64_t> window_size;  // token t attends to t - window_size + 1 .. t; absent: to 0 .. t
};

struct Sequence {
  RotaryTables rotary;
  // Added to the attention scores: 0 or -infinity, [T, T] or [B, 1, T, T]. Undefined: causal and nothing else, which
  // the attention kernels know how to do without a mask.
  at::Tensor mask;
};

// hidden        [B, T, d]       what enters the first layer: gives size, device and dtype
// positions     int64 [B, T]    undefined: 0 .. T-1
// document_ids  int64 [B, T]    undefined: one document; else tokens attend inside their own id only
Sequence make_sequence(const at::Tensor& hidden, const at::Tensor& positions, const at::Tensor& document_ids,
                       const SequenceOptions& options);

}  // namespace satformer::nn
