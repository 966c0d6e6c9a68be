#pragma once
// The pass between the packed projection and attention: qk-norm, rotary positions and the value mix, in one.
//
//   q' = RoPE(RMSNorm(q) * q_weight)     RMSNorm(x) = x / sqrt(mean(x^2) + eps) over hd; without weights: q' = RoPE(q)
//   k' = RoPE(RMSNorm(k) * k_weight)     RoPE((x1, x2)) = (x1 cos - x2 sin, x2 cos + x1 sin), the halves of a head
//   v' = v                               no mix
//      | v + gate(logits)[..., None] v1  selective (SATFormer; csrc/ops/gate.h)
//      | lambda1 v1 + lambda2 v          static (ResFormer)
//
// Sources: Zhang and Sennrich 2019, equation 4 (RMSNorm); Su et al. 2021, section 3.4 (RoPE, here half-split).
//
// "dtype" below is q's: float32, bfloat16 or float16; float64 on CPU. "Arithmetic dtype" is float32, or float64 for
// float64. Arithmetic is in that dtype with one rounding to the output's dtype at the end. A wrong argument is a
// c10::Error that names operator, argument and the value it got.
#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

#include "csrc/ops/gate.h"
#include "csrc/ops/tensor_fields.h"

namespace satformer::ops {

// An undefined tensor is an absent argument.
struct MixInputs {
  // Dtype; the last dimension is contiguous, the other strides are free: they may be slices of one packed projection.
  // hd is even, on CUDA at most 512. Any of the sizes but hd may be 0.
  at::Tensor q;  // [B, T, H, hd]
  at::Tensor k;  // [B, T, H_kv, hd]
  at::Tensor v;  // [B, T, H_kv, hd]
  // [T, 1, hd/2] or, with positions of each batch row, [B, T, 1, hd/2]; arithmetic dtype (satformer/nn/rotary.h).
  at::Tensor cos, sin;
  // [hd], arithmetic dtype; both or neither.
  at::Tensor q_weight = {}, k_weight = {};
  double eps = 1e-5;
  // v1 [B, T, H_kv, hd], like v, also expanded. Given with logits (selective) or with lambda1 and lambda2 (static). Not
  // read where the factor before it is exactly 0.
  at::Tensor first_values = {};
  at::Tensor logits = {};  // [B, T, H_kv], float32 or dtype, any strides
  Gate gate = Gate::kRelu;
  at::Tensor lambda1 = {}, lambda2 = {};  // [], arithmetic dtype
  // Without a mix: whether v' is a contiguous copy of v. Otherwise it is v itself.
  bool copy_values = false;

  static constexpr auto fields() {
    using In = MixInputs;
    return std::tuple{&In::q,
                      &In::k,
                      &In::v,
                      &In::cos,
                      &In::sin,
                      maybe(&In::q_weight),
                      maybe(&In::k_weight),
                      &In::eps,
                      maybe(&In::first_values),
                      maybe(&In::logits),
                      &In::gate,
                      maybe(&In::lambda1),
                      maybe(&In::lambda2),
                      &In::copy_values};
  }
};

// What attention reads, or the gradients of that.
struct MixOutputs {
  at::Tensor q;  // [B, T, H, hd]
  at::Tensor k;  // [B, T, H_kv, hd]
  at::Tensor v;  // [B, T, H_kv, hd]

  static constexpr auto fields() { return std::tuple{&MixOutputs::q, &MixOutputs::k, maybe(&MixOutputs::v)}; }
};

// q', k' and v', contiguous save where v' is v. Differentiable, twice, in q, k, v, the weights, first_values, logits
// and the lambdas. Saves those of its arguments that the backward pass reads, nothing else.
MixOutputs qk_norm_rope_mix(const MixInputs& inputs);

// The tensors that the backward pass writes: shapes and dtypes of the inputs, last dimension of q, k and v contiguous,
// so that they may be slices of one packed gradient.
struct MixGradientTargets {
  at::Tensor q, k;
  at::Tensor v;                  // without a mix it may be absent, and so may the gradient of v'
  at::Tensor logits = {};        // given if and only if the inputs have logits
  at::Tensor first_values = {};  // given: the gradient of first_values is ADDED to it; dtype or arithmetic dtype

  static constexpr auto fields() {
    using To = MixGradientTargets;
    return std::tuple{&To::q, &To::k, maybe(&To::v), maybe(&To::logits), maybe(&To::first_values)};
  }
};

// The gradients that the backward pass returns. Undefined where not wanted.
struct MixGradients {
  at::Tensor q_weight, k_weight;  // [hd]
  at::Tensor first_values;        // [B, T, H_kv, hd], dtype, contiguous; not if it was added to a target
  at::Tensor lambda1, lambda2;    // []

  static constexpr auto fields() {
    using To = MixGradients;
    return std::tuple{&To::q_weight, &To::k_weight, &To::first_values, &To::lambda1, &To::lambda2};
  }
};

// One pass from the gradients of q', k' and v' (of any strides) to those of the inputs. Norms and gates are computed
// again from the raw inputs, of which q and k are read with qk-norm alone and v with lambdas alone: they may be absent
// otherwise. output_mask: which gradients are wanted, in the order of MixGradients. The sums over tokens are
// taken in a fixed order: the number of threads changes no bit.
MixGradients qk_norm_rope_mix_backward(const MixInputs& inputs, const MixOutputs& grads,
                                       const MixGradientTargets& targets, std::array<bool, 5> output_mask);

}  // namespace satformer::ops
