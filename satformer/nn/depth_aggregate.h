#pragma once
// Sums over depth: the one of DenseFormer and MUDDFormer on either path, and MUDDFormer's aggregation (Xiao et al.,
// arXiv 2502.12170, equations 6 to 8).
#include <array>
#include <cstdint>
#include <vector>

#include "csrc/ops/depth_weighted_sum.h"
#include "satformer/nn/layer_context.h"
#include "satformer/nn/linear.h"
#include "satformer/nn/rms_norm.h"

namespace satformer::nn {

// ops::depth_weighted_sum. fused: fused::sum_over_depth. Else its composite definition, which is differentiable any
// number of times.
std::vector<at::Tensor> sum_over_depth(const ops::DepthSum& sum, bool fused);

// x for the later layers that read it. fused: fused::fan_out. Else x itself.
at::Tensor for_later_layers(const at::Tensor& x, bool fused);

// The inputs of a block's attention and its residual, [B, T, d] each.
struct MuddInputs {
  at::Tensor q, k, v, r;
};

// For fused::recompute_layer.
inline std::array<at::Tensor*, 4> tensors_of(MuddInputs& x) { return {&x.r, &x.v, &x.k, &x.q}; }

// The embedding and the blocks' outputs so far, each with its 1 / sqrt(mean(x^2) + eps): computed once, used by every
// later aggregation.
class DepthHistory {
 public:
  DepthHistory(double eps, bool fused) : eps_(eps), fused_(fused) {}
  void add(const at::Tensor& x);  // [B, T, d]

  const std::vector<at::Tensor>& hidden() const { return hidden_; }
  const std::vector<at::Tensor>& inverse_rms() const { return inverse_rms_; }  // [B, T] each, float32 or float64

 private:
  double eps_;
  bool fused_;
  std::vector<at::Tensor> hidden_, inverse_rms_;
};

struct DepthAggregateOptions {
  std::int64_t hidden_size = 0;
  std::int64_t num_sources = 0;  // l
  std::int64_t num_ways = 4;     // C: q, k, v, r; 1 after the last block: r alone
  bool pre_post_norm = true;
  double norm_eps = 1e-6;
};

// With X the last of the l sources X_j, K = C l and RMS without weight:
//   w = W2 gelu(W1 RMS(X)) + s                                          [B, T, C, l], gelu by erf
//   stream_c = PostNorm_c(sum_j w_cj PreNorm_j(X_j)) + X                with pre_post_norm
//   stream_c = sum_j w_cj X_j                                           without
class DepthAggregateImpl : public torch::nn::Module {
 public:
  DepthAggregateImpl(const DepthAggregateOptions& options, const at::TensorOptions& tensors);
  // With one way only `r` is defined. The observer is shown w as the depth weights of the layer.
  MuddInputs forward(const DepthHistory& history, const LayerContext& context);

  Linear w1{nullptr};                  // [K, d]
  Linear w2{nullptr};                  // [C l, K], row c l + j
  at::Tensor static_weight;            // s [C, l]: 0; without pre_post_norm the last column 1
  std::vector<RMSNorm> pre_da_norms;   // one a source; empty without pre_post_norm
  std::vector<RMSNorm> post_da_norms;  // one a way, weights 1e-3 at the start

 private:
  at::Tensor weights(const DepthHistory& history);

  DepthAggregateOptions options_;
};
TORCH_MODULE(DepthAggregate);

}  // namespace satformer::nn
