#pragma once
// Hyper-connections (Zhu et al., arXiv 2409.19606): n residual streams that each layer reads, mixes and writes.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "csrc/ops/hyper_connection.h"
#include "satformer/fused/hyper_connection.h"
#include "satformer/nn/layer_context.h"

namespace satformer::nn {

struct HyperConnectionOptions {
  std::int64_t hidden_size = 0;
  std::int64_t expansion_rate = 4;  // n
  std::int64_t index = 0;           // k, counts the attention and MLP layers of the model
  bool dynamic = true;
  bool use_tanh = true;
  bool layer_norm = false;  // N is LayerNorm, not RMSNorm

  double norm_eps() const { return layer_norm ? 1e-5 : 1.1920929e-07; }
};

using fused::HyperConnectionUse;  // a read, what it was read from and by which parameters
using ops::HyperConnectionRead;   // input: what the layer works on; mixed and beta: for write()

//   N = RMS(Hs)                                                            Hs [B, T, n, d]
//   A = static_alpha + dynamic_alpha_scale tanh(N dynamic_alpha_proj)      [B, T, n, n + 1]
//   beta = static_beta + dynamic_beta_scale tanh(N dynamic_beta_proj)      [B, T, n]
//   M = A^T Hs;  out = layer(M_0);  Hs' = beta (x) out + M_1 .. M_n
// The static form has A = static_alpha, beta = static_beta. The norm's eps is 1.1920929e-07 (rms) or 1e-5 (layer).
class HyperConnectionImpl : public torch::nn::Module {
 public:
  HyperConnectionImpl(const HyperConnectionOptions& options, const at::TensorOptions& tensors);
  // On the plain path the composite definition, which is differentiable any number of times; so is write()'s.
  HyperConnectionRead read(const at::Tensor& residual_streams, const LayerContext& context) const;
  // A [B, T, n, n + 1] of a read, for observers: without the gradient of what it was read from.
  static at::Tensor alpha(const HyperConnectionUse& use);
  // Hs' from a read and the layer's output [B, T, d]; fused, it writes over read.mixed.
  static at::Tensor write(HyperConnectionRead& read, const at::Tensor& output, const LayerContext& context);

  // static_alpha [n, n + 1] = [e_{k mod n} | I], static_beta [n] = 1, norm.weight [d] = 1, norm.bias [d] = 0 (layer
  // norm alone), dynamic_alpha_proj [d, n + 1] = 0, dynamic_beta_proj [d] = 0, both scales [1] = 0.01 at the start.
  ops::HyperConnection parameters;
};
TORCH_MODULE(HyperConnection);

// next->read(write(use.read, output)). Fused
// (fused::write_and_read) the streams between the two are not kept, and the result has none.
HyperConnectionUse write_and_read(HyperConnectionUse& use, const at::Tensor& output, const HyperConnection& next,
                                  const LayerContext& context);

}  // namespace satformer::nn
