#pragma once
// What the forward and the backward kernel of qk_norm_rope_mix share. Compiled once for each capability
// (csrc/cpu/gate_row.h says why everything here lives in the capability's own namespace).
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "csrc/cpu/gate_row.h"
#include "csrc/cpu/head_row.h"
#include "csrc/cpu/scratch.h"
#include "csrc/cpu/value_row.h"
#include "csrc/ops/qk_norm_rope_mix_checks.h"

namespace satformer::ops::inline CPU_CAPABILITY {

// cos or sin: a row of hd/2 numbers for each token.
template <typename acc_t>
struct Table {
  explicit Table(const at::Tensor& x)
      : data(x.const_data_ptr<acc_t>()), stride_b(x.dim() == 4 ? x.stride(0) : 0), stride_t(x.stride(-3)) {}
  const acc_t* data;
  std::int64_t stride_b, stride_t;
  const acc_t* row(std::int64_t b, std::int64_t t) const { return data + b * stride_b + t * stride_t; }
};

template <typename number_t>
const number_t* data_or_null(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<number_t>() : nullptr;
}
template <typename number_t>
number_t* writable_or_null(const at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<number_t>() : nullptr;
}
template <typename scalar_t>
Values<const scalar_t*> reading_or_null(const at::Tensor& x) {
  return x.defined() ? reading<scalar_t>(x) : Values<const scalar_t*>{};
}
template <typename scalar_t>
Values<scalar_t*> writing_or_null(const at::Tensor& x) {
  return x.defined() ? writing<scalar_t>(x) : Values<scalar_t*>{};
}

// What forward and backward share: sizes, tables, weights, the mix.
template <typename scalar_t>
struct Pass {
  using acc_t = at::opmath_type<scalar_t>;
  Pass(const MixInputs& in, const at::Tensor& q_like, const at::Tensor& k_like)
      : B(q_like.size(0)),
        T(q_like.size(1)),
        H(q_like.size(2)),
        H_kv(k_like.size(2)),
        hd(q_like.size(3)),
        cos(in.cos),
        sin(in.sin),
        q_weight(data_or_null<acc_t>(in.q_weight)),
        k_weight(data_or_null<acc_t>(in.k_weight)),
        eps(static_cast<acc_t>(in.eps)),
        mix(value_mix(in)),
        gate(in.gate),
        logits(row_source(in.logits)),
        first(reading_or_null<scalar_t>(in.first_values)),
        lambda1(in.lambda1.defined() ? *in.lambda1.const_data_ptr<acc_t>() : acc_t(0)),
        lambda2(in.lambda2.defined() ? *in.lambda2.const_data_ptr<acc_t>() : acc_t(0)) {}
  std::int64_t B, T, H, H_kv, hd;
  Table<acc_t> cos, sin;
  const acc_t *q_weight, *k_weight;
  acc_t eps;
  ValueMix mix;
  Gate gate;
  RowSource logits;
  Values<const scalar_t*> first;
  acc_t lambda1, lambda2;

  Rotation<acc_t> rotation(std::int64_t b, std::int64_t t) const { return {cos.row(b, t), sin.row(b, t), hd / 2}; }
  // Reads a token's logits and opens its gates; `memory` holds 4 H_kv numbers.
  GateRow<acc_t> gates(std::int64_t b, std::int64_t t, acc_t* memory) const {
    GateRow<acc_t> row{H_kv, memory, memory + H_kv, memory + 2 * H_kv, memory + 3 * H_kv};
    read_row(row.logits, logits, b, t, H_kv);
    row.forward(gate);
    return row;
  }
  // Tokens of a block or task: fewer cost more to hand out than to do.
  std::int64_t tokens_a_block() const {
    constexpr std::int64_t kValues = 16384;
    return std::max<std::int64_t>(1, kValues / std::max<std::int64_t>((H + 2 * H_kv) * hd, 1));
  }
};

}  // namespace satformer::ops::inline CPU_CAPABILITY
