#pragma once
// Attention of packed documents, each for itself, by LibTorch's flash attention on CUDA: without a mask of T x T.
#include <cstdint>
#include <optional>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "satformer/fused/attention_context.h"

namespace satformer::fused {

// Under autograd. [B, T, H, hd]; token t sees its document's tokens t - window_size + 1 .. t, or all up to t.
at::Tensor attend_documents(const ops::MixOutputs& in, const Documents& documents,
                            const std::optional<std::int64_t>& window_size);

}  // namespace satformer::fused
