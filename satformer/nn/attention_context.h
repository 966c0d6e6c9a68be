#pragma once
// Makes what all layers of one forward pass share: the rotation of each position, and who attends to whom.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "satformer/fused/attention_context.h"

namespace satformer::nn {

using fused::AttentionContext;
using fused::Documents;

struct AttentionContextOptions {
  std::int64_t head_dim = 0;
  double rope_theta = 10000.0;
  std::optional<std::int64_t> window_size;  // token t attends to t - window_size + 1 .. t; absent: to 0 .. t
  bool fused = true;                        // false: documents always as a mask
};

// hidden        [B, T, d]       what enters the first layer: gives size, device and dtype
// positions     int64 [B, T]    undefined: 0 .. T-1
// document_ids  int64 [B, T]    undefined: one document; else tokens attend inside their own id only. On the CPU, also
//                               for a hidden on a GPU: there the host would wait to read them
AttentionContext make_attention_context(const at::Tensor& hidden, const at::Tensor& positions,
                                        const at::Tensor& document_ids, const AttentionContextOptions& options);

// The documents of ids on the CPU; none where an id comes back after another one, which only a mask can say.
std::optional<Documents> find_documents(const at::Tensor& document_ids);

}  // namespace satformer::nn
