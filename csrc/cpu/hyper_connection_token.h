#pragma once
// One token of the hyper-connections' read, as the forward and the backward kernel take it: the n rows stay in cache,
// and their norms, the n (n + 2) products with the projections and the coefficients are taken from there. The norm's
// weight is a factor of the projections, its inverse one of the products, so that no normalised row is written.
// Compiled once for each capability (csrc/cpu/gate_row.h says why everything here lives in the capability's own
// namespace).
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "csrc/cpu/hyper_connection_kernel.h"
#include "csrc/cpu/row_products.h"
#include "csrc/ops/hyper_connection.h"

namespace satformer::ops::inline CPU_CAPABILITY {

constexpr std::int64_t kRows =
    2 * 8 + 3;  // the most rows of one token that are combined: n+1 gradients, n+2 projections

template <typename scalar_t, typename pointer_t>
auto* row_of(const StreamRows<pointer_t>& rows, std::int64_t b, std::int64_t t, std::int64_t i = 0) {
  using element_t = std::conditional_t<std::is_same_v<pointer_t, void*>, scalar_t, const scalar_t>;
  return static_cast<element_t*>(rows.data) + b * rows.stride_b + t * rows.stride_t + i * rows.stride_n;
}

template <typename acc_t>
const acc_t* numbers(const void* data) {
  return static_cast<const acc_t*>(data);
}

// One token's streams h_i, their centred rows x_i (h_i itself with RMSNorm), and the coefficients.
template <typename scalar_t, typename acc_t>
class StreamsToken {
 public:
  explicit StreamsToken(const HyperConnectionData& data)
      : data_(data),
        n(data.n),
        d(data.d),
        products(n + 2),
        streams_(n * d),
        centred_(data.layer_norm ? n * d : 0),
        logits(n * products),
        bounded(n * products) {}

  void load(std::int64_t b, std::int64_t t) {
    for (std::int64_t i = 0; i < n; ++i) {
      h[i] = x[i] = widened<acc_t>(row_of<scalar_t>(data_.streams, b, t, i), streams_.get() + i * d, d);
    }
  }

  // means, then x_i = h_i - mean_i
  void find_means() {
    for (std::int64_t i = 0; i < n; ++i) {
      using Vec = at::vec::Vectorized<acc_t>;
      mean[i] = d == 0
                    ? acc_t(0)
                    : at::vec::reduce_all<acc_t>([](Vec a, Vec b) { return a + b; }, h[i], d) / static_cast<acc_t>(d);
    }
    centre();
  }
  void centre() {
    using Vec = at::vec::Vectorized<acc_t>;
    for (std::int64_t i = 0; i < n; ++i) {
      acc_t* row = centred_.get() + i * d;
      at::vec::map([m = Vec(mean[i])](Vec a) { return a - m; }, row, h[i], d);
      x[i] = row;
    }
  }

  // inverse and logits: f's arguments [n, n+2]
  void find_logits() {
    const acc_t *projections = numbers<acc_t>(data_.projections), *offsets = numbers<acc_t>(data_.projection_offsets);
    const acc_t* rows[kRows];
    for (std::int64_t m = 0; m < products; ++m) rows[m] = projections + m * d;
    dots(logits.get(), products, n, x, products, rows, d);
    for (std::int64_t i = 0; i < n; ++i) {
      const acc_t square = dot(x[i], x[i], d) / static_cast<acc_t>(d);
      inverse[i] = acc_t(1) / std::sqrt(square + static_cast<acc_t>(data_.norm_eps));
      for (std::int64_t m = 0; m < products; ++m) {
        logits[i * products + m] = inverse[i] * logits[i * products + m] + offsets[m];
      }
    }
  }

  void store_kept(acc_t* kept) const {
    for (std::int64_t i = 0; i < n; ++i, kept += products + 2) {
      std::copy_n(logits.get() + i * products, products, kept);
      kept[products] = inverse[i];
      kept[products + 1] = mean[i];
    }
  }
  void load_kept(const acc_t* kept) {
    for (std::int64_t i = 0; i < n; ++i, kept += products + 2) {
      std::copy_n(kept, products, logits.get() + i * products);
      inverse[i] = kept[products];
      mean[i] = kept[products + 1];
    }
    if (data_.layer_norm) centre();
  }

  // f(logits)
  void bound() {
    using Vec = at::vec::Vectorized<acc_t>;
    if (data_.use_tanh) {
      at::vec::map([](Vec a) { return a.tanh(); }, bounded.get(), logits.get(), n * products);
    } else {
      std::copy_n(logits.get(), n * products, bounded.get());
    }
  }
  // f' from f
  acc_t slope(acc_t value) const { return data_.use_tanh ? acc_t(1) - value * value : acc_t(1); }

  // A_im and beta_i = A_i,n+1
  acc_t coefficient(std::int64_t i, std::int64_t m) const {
    const bool is_beta = m == n + 1;
    const acc_t fixed =
        is_beta ? numbers<acc_t>(data_.static_beta)[i] : numbers<acc_t>(data_.static_alpha)[i * (n + 1) + m];
    return data_.projections ? fixed + scale(m) * bounded[i * products + m] : fixed;
  }
  acc_t scale(std::int64_t m) const { return *numbers<acc_t>(m == n + 1 ? data_.beta_scale : data_.alpha_scale); }

 private:
  const HyperConnectionData& data_;

 public:
  const std::int64_t n, d, products;
  const acc_t* h[kMaxStreams];
  const acc_t* x[kMaxStreams];
  acc_t inverse[kMaxStreams] = {}, mean[kMaxStreams] = {};

 private:
  Scratch<acc_t> streams_, centred_;

 public:
  Scratch<acc_t> logits, bounded;  // [n, n+2]
};

// rows[i]: where row i of `out` is computed.
template <typename scalar_t, typename acc_t>
void result_rows(acc_t** rows, scalar_t* out, [[maybe_unused]] acc_t* space, std::int64_t count, std::int64_t d) {
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<scalar_t, acc_t>) {
      rows[i] = out + i * d;
    } else {
      rows[i] = space + i * d;
    }
  }
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
