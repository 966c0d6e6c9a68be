#pragma once
#include <cstdint>

#include "satformer/nn/linear.h"

namespace satformer::nn {

struct MLPOptions {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
};

// y = (silu(x Wgate) * (x Wup)) Wdown (SwiGLU: Shazeer 2020, equation 6)
class MLPImpl : public torch::nn::Module {
 public:
  MLPImpl(const MLPOptions& options, const at::TensorOptions& tensors);
  // [B, T, d] -> [B, T, d]
  at::Tensor forward(const at::Tensor& x);

  Linear gate_proj{nullptr};  // [f, d]
  Linear up_proj{nullptr};    // [f, d]
  Linear down_proj{nullptr};  // [d, f]
};
TORCH_MODULE(MLP);

}  // namespace satformer::nn
