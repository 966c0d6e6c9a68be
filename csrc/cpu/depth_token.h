#pragma once
// One token of a depth-weighted sum: the rows of its sources are brought into cache once, as y_j = g_j x_j in the
// arithmetic dtype, and serve all ways, forward and backward; r_j is a factor of the weights. Compiled with the CPU
// kernels (see cpu/row_products.h on what may stand here).
#include <cmath>

#include "csrc/cpu/depth_weighted_sum_kernel.h"
#include "csrc/cpu/row_products.h"

namespace satformer::ops::inline CPU_CAPABILITY {

template <typename scalar_t, typename pointer_t>
auto* row_of(const TokenRows<pointer_t>& rows, std::int64_t b, std::int64_t t) {
  using element_t = std::conditional_t<std::is_same_v<pointer_t, void*>, scalar_t, const scalar_t>;
  return static_cast<element_t*>(rows.data) + b * rows.stride_b + t * rows.stride_t;
}

template <typename acc_t>
const acc_t* acc_row(const void* data, std::int64_t offset) {
  return static_cast<const acc_t*>(data) + offset;
}

// One token: its rows y_j, its factors w_cj r_j, its sums.
template <typename scalar_t, typename acc_t>
class DepthToken {
 public:
  // with_base: a base without an output norm is one more source of weight 1.
  DepthToken(const DepthSumData& data, bool with_base)
      : data_(data),
        terms(data.sources + (with_base ? 1 : 0)),
        rows(terms),
        factors(data.ways * terms),
        space_(needs_space() ? terms * data.d : 0) {}

  void load(std::int64_t b, std::int64_t t) {
    b_ = b, t_ = t;
    const std::int64_t S = data_.sources, d = data_.d, token = b * data_.T + t;
    const acc_t* w = weights(token);
    for (std::int64_t j = 0; j < S; ++j) {
      acc_t* space = space_.get() + (needs_space() ? j * d : 0);
      rows[j] = widened<acc_t>(row_of<scalar_t>(data_.source[j], b, t), space, d);
      if (data_.norm_weights) {
        const acc_t* g = acc_row<acc_t>(data_.norm_weights[j], 0);
        using Vec = at::vec::Vectorized<acc_t>;
        at::vec::map2([](Vec x, Vec weight) { return x * weight; }, space, rows[j], g, d);
        rows[j] = space;
      }
      const acc_t r = inverse(j);
      for (std::int64_t c = 0; c < data_.ways; ++c) factors[c * terms + j] = w[c * S + j] * r;
    }
    if (terms > S) {
      rows[S] = base(space_.get() + (needs_space() ? S * d : 0));
      for (std::int64_t c = 0; c < data_.ways; ++c) factors[c * terms + S] = acc_t(1);
    }
  }

  void sum(acc_t* const* out) const {
    combine(data_.ways, out, rows.get(), factors.get(), terms, terms, data_.d, /*add=*/false);
  }

  const acc_t* weights(std::int64_t token) const {
    return acc_row<acc_t>(data_.weights, data_.weights_per_token ? token * data_.ways * data_.sources : 0);
  }
  acc_t inverse(std::int64_t j) const {
    return data_.inverse_rms ? *acc_row<acc_t>(data_.inverse_rms[j], b_ * data_.T + t_) : acc_t(1);
  }
  const acc_t* source(std::int64_t j, acc_t* space) const {  // x_j, without its norm
    return widened<acc_t>(row_of<scalar_t>(data_.source[j], b_, t_), space, data_.d);
  }
  const acc_t* base(acc_t* space) const { return widened<acc_t>(row_of<scalar_t>(data_.base, b_, t_), space, data_.d); }
  // 1 / sqrt(mean(s^2) + eps)
  acc_t inverse_of_sum(const acc_t* s) const {
    const acc_t mean = dot(s, s, data_.d) / static_cast<acc_t>(data_.d);
    return acc_t(1) / std::sqrt(mean + static_cast<acc_t>(data_.output_norm_eps));
  }

 private:
  bool needs_space() const { return data_.norm_weights || !std::is_same_v<scalar_t, acc_t>; }

  const DepthSumData& data_;
  std::int64_t b_ = 0, t_ = 0;

 public:
  const std::int64_t terms;
  Scratch<const acc_t*> rows;  // [terms]
  Scratch<acc_t> factors;      // [ways, terms]

 private:
  Scratch<acc_t> space_;
};

}  // namespace satformer::ops::inline CPU_CAPABILITY
