#include "satformer/fused/attention_documents.h"

#include <ATen/ops/_flash_attention_forward.h>

#include <tuple>

namespace satformer::fused {

at::Tensor attend_documents(const ops::MixOutputs& in, const Documents& documents,
                            const std::optional<std::int64_t>& window_size) {
  const std::optional<std::int64_t> left = window_size ? std::optional(*window_size - 1) : std::nullopt;
  const at::Tensor attended = std::get<0>(at::_flash_attention_forward(
      in.q.flatten(0, 1), in.k.flatten(0, 1), in.v.flatten(0, 1), documents.offsets, documents.offsets,
      documents.longest, documents.longest, /*dropout_p=*/0, /*is_causal=*/true, /*return_debug_mask=*/false,
      /*scale=*/{}, left));
  return attended.view(in.q.sizes());
}

}  // namespace satformer::fused
