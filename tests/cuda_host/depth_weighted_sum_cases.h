#pragma once
// What the test of depth_weighted_sum's kernels needs: inputs of every form, and the formulas of
// csrc/ops/depth_weighted_sum.h in float64.
#include <vector>

#include "csrc/cuda/depth_weighted_sum_launch.h"
#include "tests/cuda_host/operands.h"

namespace satformer::ops::cuda {

using cuda_host::Buffer;
using cuda_host::Expected;
using Row = std::vector<double>;

struct Case {
  int64_t B, T, d;
  int S, C;
  bool per_token = false, base = false, source_norms = false, output_norms = false;
  size_t shift = 0;  // elements by which the sources leave the 16-byte grid
  int64_t gap = 0;   // elements between the rows of the sources
  int64_t tokens() const { return B * T; }
  // One unit for each term of a sum.
  double ulps() const { return 16 + static_cast<double>(d + S + C); }
  double sum_ulps() const { return ulps() + static_cast<double>(tokens()); }
  std::string text() const {
    std::string result;
    for (const int64_t x : {B, T, d, int64_t{S}, int64_t{C}, int64_t{per_token}, int64_t{base}, int64_t{source_norms},
                            int64_t{output_norms}, gap}) {
      result += std::to_string(x) + " ";
    }
    return result + "shift " + std::to_string(shift) + ": ";
  }
};

constexpr float kEps = 1e-3F;

// The sums of one token and the gradients of them, with the magnitudes that errors are relative to.
struct Token {
  std::vector<Row> s, m, G, m_G;  // [C][d]
  Row r, rho;                     // [C]: the inverse rms of a sum, its relative error
};

template <typename T>
struct Inputs {
  Case c;
  int64_t row;
  std::vector<Numbers<T>> sources, grads, before;
  std::vector<Numbers<float>> norm_weights, inverse, output_norm_weights;
  Numbers<T> base;
  Numbers<float> weights;

  explicit Inputs(const Case& test_case)
      : c(test_case),
        row(c.d + c.gap),
        base("base", c.tokens() * c.d, 1),
        weights("weights", (c.per_token ? c.tokens() : 1) * c.C * c.S, 2) {
    for (int j = 0; j < c.S; ++j) {
      sources.emplace_back("source", c.tokens() * row, 10 + j, c.shift);
      before.emplace_back("grad_source", c.tokens() * row, 110 + j, c.shift);
      norm_weights.emplace_back("norm_weight", c.d, 210 + j);
      inverse.emplace_back("inverse_rms", c.tokens(), 310 + j);
    }
    for (int i = 0; i < c.C; ++i) {
      grads.emplace_back("grad", c.tokens() * c.d, 410 + i);
      output_norm_weights.emplace_back("output_norm_weight", c.d, 510 + i);
    }
  }

  DepthSumLaunch launch() {
    DepthSumLaunch a{};
    a.B = c.B, a.T = c.T, a.d = c.d, a.sources = c.S, a.ways = c.C;
    a.dtype = dtype_of<T>();
    a.weights_per_token = c.per_token, a.source_norms = c.source_norms, a.output_norms = c.output_norms;
    a.output_norm_eps = kEps;
    a.weights = weights.data();
    if (c.base) a.base = {base.data(), c.T * c.d, c.d};
    for (int j = 0; j < c.S; ++j) {
      a.source[j] = {sources[j].data(), c.T * row, row};
      if (!c.source_norms) continue;
      a.norm_weights[j] = norm_weights[j].data();
      a.inverse_rms[j] = inverse[j].data();
    }
    for (int i = 0; i < c.C && c.output_norms; ++i) a.output_norm_weights[i] = output_norm_weights[i].data();
    return a;
  }

  double x(int64_t token, int j, int64_t k) const { return sources[j][token * row + k]; }
  double g(int j, int64_t k) const { return c.source_norms ? norm_weights[j][k] : 1; }
  double r(int64_t token, int j) const { return c.source_norms ? inverse[j][token] : 1; }
  double p(int i, int64_t k) const { return c.output_norms ? output_norm_weights[i][k] : 1; }
  double w(int64_t token, int i, int j) const { return weights[(c.per_token ? token * c.C * c.S : 0) + i * c.S + j]; }
  double grad(int64_t token, int i, int64_t k) const { return grads[i][token * c.d + k]; }

  Token formulas(int64_t token) const {
    Token t;
    const int64_t d = c.d;
    const double size = static_cast<double>(d);
    for (int i = 0; i < c.C; ++i) {
      Row s(d), m(d), G(d), m_G(d);
      double square = 0, m_square = 0, along = 0, s_y = 0, m_y = 0;
      for (int64_t k = 0; k < d; ++k) {
        for (int j = 0; j < c.S; ++j) {
          const double term = w(token, i, j) * r(token, j) * g(j, k) * x(token, j, k);
          s[k] += term;
          m[k] += std::fabs(term);
        }
        const double y = p(i, k) * grad(token, i, k);
        square += s[k] * s[k] / size;
        m_square += std::fabs(s[k]) * m[k] / size;
        along += s[k] * y / size;
        s_y += std::fabs(s[k] * y) / size;
        m_y += std::fabs(m[k] * y) / size;
      }
      const double r = 1 / std::sqrt(square + static_cast<double>(kEps)), rho = r * r * m_square, cube = r * r * r;
      for (int64_t k = 0; k < d; ++k) {
        const double y = p(i, k) * grad(token, i, k), a = std::fabs(s[k]);
        G[k] = c.output_norms ? r * y - s[k] * cube * along : y;
        m_G[k] = c.output_norms ? r * std::fabs(y) * (1 + rho) + cube * ((a + m[k] + 3 * rho * a) * s_y + a * m_y)
                                : std::fabs(y);
      }
      t.s.push_back(s), t.m.push_back(m), t.G.push_back(G), t.m_G.push_back(m_G);
      t.r.push_back(r), t.rho.push_back(rho);
    }
    return t;
  }
};

// What the backward must write.
struct Gradients {
  std::vector<std::vector<Expected>> sources;  // without what was there before
  std::vector<Expected> base, weights, inverse, norm_weights, output_norm_weights;
};

template <typename T>
Gradients gradients_of(const Inputs<T>& in) {
  const Case& c = in.c;
  const Expected zero{0, 0};
  const size_t tokens = static_cast<size_t>(c.tokens()), S = c.S, C = c.C, d = static_cast<size_t>(c.d);
  Gradients out{std::vector<std::vector<Expected>>(S, std::vector<Expected>(tokens * d, zero)),
                std::vector<Expected>(tokens * d, zero),
                std::vector<Expected>((c.per_token ? tokens : 1) * C * S, zero),
                std::vector<Expected>(S * tokens, zero),
                std::vector<Expected>(S * d, zero),
                std::vector<Expected>(C * d, zero)};
  for (size_t token = 0; token < tokens; ++token) {
    const int64_t at = static_cast<int64_t>(token);
    const Token t = in.formulas(at);
    for (size_t k = 0; k < d; ++k) {
      const int64_t column = static_cast<int64_t>(k);
      for (size_t i = 0; i < C; ++i) {
        const int way = static_cast<int>(i);
        const double grad = in.grad(at, way, column), G = t.G[i][k], m_G = t.m_G[i][k];
        out.base[token * d + k].add(grad);
        out.output_norm_weights[i * d + k].add(
            grad * t.r[i] * t.s[i][k], std::fabs(grad) * t.r[i] * (std::fabs(t.s[i][k]) * (1 + t.rho[i]) + t.m[i][k]));
        for (size_t j = 0; j < S; ++j) {
          const int source = static_cast<int>(j);
          const double x = in.x(at, source, column), g = in.g(source, column), r = in.r(at, source),
                       w = in.w(at, way, source);
          out.sources[j][token * d + k].add(g * r * w * G, std::fabs(g * r * w * m_G));
          out.weights[((c.per_token ? token : 0) * C + i) * S + j].add(r * g * x * G, std::fabs(r * g * x * m_G));
          out.inverse[j * tokens + token].add(w * g * x * G, std::fabs(w * g * x * m_G));
          out.norm_weights[j * d + k].add(r * x * w * G, std::fabs(r * x * w * m_G));
        }
      }
    }
  }
  return out;
}

}  // namespace satformer::ops::cuda
