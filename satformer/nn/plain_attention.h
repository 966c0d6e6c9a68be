#pragma once
// Attention on the plain path: the equations of docs/architectures.md one after the other, from ATen and the registered
// operators rms_norm and gated_value_mix, under ordinary autograd. For reading, debugging, hooks on what lies between,
// and second derivatives; attention.h is what trains fast. The scores of the whole sequence, [B, H, T, T], exist here.
#include <vector>

#include "satformer/nn/attention.h"

namespace satformer::nn {

// As AttentionImpl::forward, with the parameters of `attention`.
AttentionOutput plain_attention(AttentionImpl& attention, const std::vector<AttentionSource>& sources,
                                const ValueResidual& residual, const LayerContext& context);

}  // namespace satformer::nn
