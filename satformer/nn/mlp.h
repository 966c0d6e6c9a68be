#pragma once
// The MLP of a decoder block.
#include <cstdint>

#include "satformer/fused/norm_linear.h"
#include "satformer/nn/layer_context.h"
#include "satformer/nn/linear.h"
#include "satformer/nn/rms_norm.h"

namespace satformer::nn {

struct MLPOptions {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
};

// y = (silu(u Wgate) * (u Wup)) Wdown with u = RMSNorm(x) (SwiGLU: Shazeer 2020, equation 6). Fused, one matrix product
// serves gate and up.
class MLPImpl : public torch::nn::Module {
 public:
  MLPImpl(const MLPOptions& options, const at::TensorOptions& tensors);
  // x and y, y being still to be added to x.
  ResidualStream forward(const ResidualStream& x, const RMSNorm& norm, const LayerContext& context);

  Linear gate_proj{nullptr};  // [f, d]
  Linear up_proj{nullptr};    // [f, d]
  Linear down_proj{nullptr};  // [d, f]

 private:
  fused::PackedWeight gate_up_, down_;
};
TORCH_MODULE(MLP);

}  // namespace satformer::nn
