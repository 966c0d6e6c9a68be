#pragma once
// The formulas of csrc/ops/qk_norm_rope_mix.h in float64, for the test of its kernels.
#include <algorithm>
#include <utility>
#include <vector>

#include "tests/cuda_host/qk_norm_rope_mix_cases.h"

namespace satformer::ops::cuda {

// --- the formulas, a row at a time -----------------------------------------------------------------------------
using Row = std::vector<double>;

// (x1 cos - x2 sin, x2 cos + x1 sin), with direction -1 the rotation back; and the magnitudes of the terms.
template <typename In>
std::pair<Row, Row> rotate(const In& in, const Row& x, const Row& magnitude, double direction, int64_t b, int64_t t) {
  const size_t half = x.size() / 2, row = in.table_row(b, t);
  Row y(x.size()), m(x.size());
  for (size_t i = 0; i < half; ++i) {
    const double c = in.cos[row + i], s = direction * in.sin[row + i];
    y[i] = x[i] * c - x[half + i] * s;
    y[half + i] = x[half + i] * c + x[i] * s;
    m[i] = magnitude[i] * std::fabs(c) + magnitude[half + i] * std::fabs(s);
    m[half + i] = magnitude[half + i] * std::fabs(c) + magnitude[i] * std::fabs(s);
  }
  return {y, m};
}

inline Row abs_of(Row x) {
  for (double& a : x) a = std::fabs(a);
  return x;
}

template <typename N>
Row row_of_numbers(const N& numbers, const View& view, int64_t b, int64_t t, int64_t h, int64_t hd) {
  Row x;
  for (int64_t i = 0; i < hd; ++i) x.push_back(numbers[view.at(b, t, h, i)]);
  return x;
}

inline double inverse_rms_of(const Row& x) {
  double squares = 0;
  for (const double a : x) squares += a * a;
  return 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
}

// --- gradients ---
// Expectations for a packed gradient, and for what is summed or returned.
struct Gradients {
  std::vector<Expected> packed, first, logits, q_weight, k_weight, lambdas;
};

template <typename In>
void head_gradients(const In& in, const View& view, const View& grad_view, const Row& grad_numbers,
                    const Numbers<float>& weight, int64_t heads, std::vector<Expected>& packed,
                    std::vector<Expected>& of_weight) {
  const Case& c = in.c;
  of_weight.assign(static_cast<size_t>(c.hd), {0, 0});
  for_each_row({c.B, c.T, heads, c.hd}, [&](int64_t b, int64_t t, int64_t h) {
    const Row grad = row_of_numbers(grad_numbers, grad_view, b, t, h, c.hd);
    const auto [g, m] = rotate(in, grad, abs_of(grad), -1, b, t);
    const Row x = row_of_numbers(in.projection, view, b, t, h, c.hd);
    const double r = inverse_rms_of(x), size = static_cast<double>(c.hd);
    double mean = 0, mean_magnitude = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      mean += g[i] * weight[i] * x[i] * r / size;
      mean_magnitude += m[i] * std::fabs(weight[i] * x[i]) * r / size;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const double w = weight[i], n = x[i] * r;
      packed[view.at(b, t, h) + i] =
          c.norm ? Expected{r * (g[i] * w - n * mean), r * (m[i] * std::fabs(w) + std::fabs(n) * mean_magnitude)}
                 : Expected{g[i], m[i]};
      of_weight[i].add(g[i] * n, m[i] * std::fabs(n));
    }
  });
}

template <typename In>
void value_gradients(const In& in, Gradients& out) {
  const Case& c = in.c;
  const View kv_view = contiguous(c.kv_sizes());
  out.first.resize(static_cast<size_t>(c.tokens() * c.H_kv * c.hd));
  out.logits.assign(2 * static_cast<size_t>(c.tokens() * c.H_kv), cuda_host::untouched());
  out.lambdas.assign(2, {0, 0});
  for (int64_t b = 0; b < c.B; ++b) {
    for (int64_t t = 0; t < c.T; ++t) {
      const RowGates gates = in.gates(b, t);
      Row to_alpha, magnitude;
      double largest = 0;
      for (int64_t h = 0; h < c.H_kv; ++h) {
        const auto [first, own] = in.factors(gates, h);
        double dot = 0, size = 0;
        for (int64_t i = 0; i < c.hd; ++i) {
          const double g = in.grad_v[in.grad_kv_view.at(b, t, h, i)], v1 = in.first[in.first_view.at(b, t, h, i)];
          const double v = in.projection[in.views.v.at(b, t, h, i)];
          out.packed[in.views.v.at(b, t, h, i)] = {own * g, std::fabs(own * g)};
          out.first[kv_view.at(b, t, h, i)] = {first * g, std::fabs(first * g)};
          dot += g * v1, size += std::fabs(g * v1);
          out.lambdas[1].add(g * v);
        }
        out.lambdas[0].add(dot, size);
        to_alpha.push_back(dot), magnitude.push_back(size);
        largest = std::max(largest, size);
      }
      const Row to_logits = cuda_host::logit_gradients(c.gate, gates, to_alpha);
      for (int64_t h = 0; h < c.H_kv; ++h) {
        const size_t j = static_cast<size_t>(h);
        const double over = is_over_heads(c.gate) ? 1 : 0;
        const double spread = 1 + over * gates.softmax[j] * static_cast<double>(c.H_kv);
        out.logits[2 * (static_cast<size_t>((b * c.T + t) * c.H_kv) + j)] = {to_logits[j],
                                                                             spread * (magnitude[j] + over * largest)};
      }
    }
  }
}

template <typename T>
Row doubles(const Numbers<T>& numbers) {
  Row x;
  for (const T& a : numbers.host) x.push_back(as_double(a));
  return x;
}

}  // namespace satformer::ops::cuda
