#pragma once
// Rotary position embedding, half-split: with x = (x1, x2) the two halves of a head and angle[p, j] = p theta^(-2j/hd),
//   y1 = x1 cos(angle) - x2 sin(angle)
//   y2 = x2 cos(angle) + x1 sin(angle)
// Source: Su et al. 2021, section 3.4; the half-split layout is GPT-NeoX's. ops::qk_norm_rope_mix rotates by the
// tables.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "satformer/fused/attention_context.h"

namespace satformer::nn {

using fused::RotaryTables;

// positions: int64 [T] or [B, T]. Angles are computed in float64; `dtype` is the tables': float32 or float64.
RotaryTables make_rotary_tables(const at::Tensor& positions, std::int64_t head_dim, double theta, at::ScalarType dtype);

}  // namespace satformer::nn
