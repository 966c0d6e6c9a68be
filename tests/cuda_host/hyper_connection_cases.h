#pragma once
// What the test of the hyper-connections' kernels needs: inputs of every form, and the formulas of
// csrc/ops/hyper_connection.h in float64.
#include <string>
#include <vector>

#include "csrc/cuda/hyper_connection_launch.h"
#include "tests/cuda_host/operands.h"

namespace satformer::ops::cuda {

using cuda_host::Buffer;
using cuda_host::Expected;
using Row = std::vector<double>;

struct Case {
  int64_t B, T, n, d;
  bool dynamic = true, layer_norm = false, use_tanh = true;
  size_t shift = 0;  // elements by which the streams leave the 16-byte grid
  int64_t gap = 0;   // elements between the rows of the streams
  Sizes sizes() const { return {B, T, n, d}; }
  int64_t tokens() const { return B * T; }
  // One unit for each term of a sum over the columns and streams; over all tokens for the parameters.
  double ulps() const { return 16 + static_cast<double>(d + 2 * n + 4); }
  double sum_ulps() const { return ulps() + static_cast<double>(tokens() * n); }
  std::string text() const {
    std::string result;
    for (const int64_t x : {B, T, n, d, int64_t{dynamic}, int64_t{layer_norm}, int64_t{use_tanh}}) {
      result += std::to_string(x) + " ";
    }
    return result + "shift " + std::to_string(shift) + " gap " + std::to_string(gap) + ": ";
  }
};

// What the formulas give for one token, and the magnitudes that errors are relative to (in tests/csrc's
// hyper_connection_support.cpp the same in tensors).
struct Token {
  Row x, m_x;                                 // normalised rows before the weight [n, d]
  Row inverse, m_inverse, mean, m_mean;       // [n]
  Row z, m_z, f, coefficient, m_coefficient;  // [n, n+2]
};

template <typename T>
struct Inputs {
  Case c;
  int64_t row;  // between the rows of the streams
  Numbers<T> streams, grad_input, grad_mixed;
  Numbers<float> static_alpha, static_beta, projections, offsets, scales, grad_beta;
  std::vector<float> host_means;
  Buffer<float> means;

  explicit Inputs(const Case& test_case)
      : c(test_case),
        row(c.d + c.gap),
        streams("streams", c.tokens() * c.n * row, 1, c.shift),
        grad_input("grad_input", c.tokens() * c.d, 2),
        grad_mixed("grad_mixed", c.tokens() * c.n * c.d, 3),
        static_alpha("static_alpha", c.n * (c.n + 1), 4),
        static_beta("static_beta", c.n, 5),
        projections("projections", (c.n + 2) * c.d, 6, 0, 1 / std::sqrt(static_cast<double>(c.d))),
        offsets("offsets", c.n + 2, 7, 0, c.layer_norm ? 1 : 0),
        scales("scales", 2, 8),
        grad_beta("grad_beta", c.tokens() * c.n, 9),
        host_means(means_of()),
        means(host_means, "means") {}

  std::vector<float> means_of() const {
    std::vector<float> result;
    for (int64_t m = 0; m < c.n + 2; ++m) {
      double sum = 0;
      for (int64_t i = 0; i < c.d; ++i) sum += projections[m * c.d + i];
      result.push_back(static_cast<float>(sum / static_cast<double>(c.d)));
    }
    return result;
  }

  HyperConnectionLaunch launch() {
    HyperConnectionLaunch a{};
    a.sizes = c.sizes();
    a.dtype = dtype_of<T>();
    a.streams = {streams.data(), {c.T * c.n * row, c.n * row, row}};
    a.static_alpha = static_alpha.data();
    a.static_beta = static_beta.data();
    if (c.dynamic) {
      a.projections = projections.data();
      a.offsets = offsets.data();
      a.means = means.data();
      a.alpha_scale = scales.data();
      a.beta_scale = scales.data() + 1;
    }
    a.norm_eps = 1e-3F;
    a.layer_norm = c.layer_norm;
    a.use_tanh = c.use_tanh;
    return a;
  }

  double h(int64_t token, int64_t i, int64_t column) const { return streams[(token * c.n + i) * row + column]; }
  double grad(int64_t token, int64_t m, int64_t column) const {
    return m == 0 ? grad_input[token * c.d + column] : grad_mixed[(token * c.n + m - 1) * c.d + column];
  }

  Token formulas(int64_t token) const {
    Token t;
    const int64_t n = c.n, d = c.d, K = n + 2;
    for (int64_t i = 0; i < n; ++i) {
      double mean = 0, m_mean = 0, square = 0;
      for (int64_t k = 0; k < d && c.layer_norm; ++k) {
        mean += h(token, i, k) / static_cast<double>(d);
        m_mean += std::fabs(h(token, i, k)) / static_cast<double>(d);
      }
      for (int64_t k = 0; k < d; ++k) square += std::pow(h(token, i, k) - mean, 2) / static_cast<double>(d);
      const double r = 1 / std::sqrt(square + static_cast<double>(1e-3F));
      t.inverse.push_back(r);
      t.mean.push_back(mean);
      t.m_mean.push_back(m_mean);
      for (int64_t k = 0; k < d; ++k) {
        t.x.push_back(r * (h(token, i, k) - mean));
        t.m_x.push_back(r * (std::fabs(h(token, i, k)) + m_mean));
      }
      double m_square = 0;  // relative to square: the error of a row meets the row
      for (int64_t k = 0; k < d; ++k) m_square += std::fabs(t.x[i * d + k]) * t.m_x[i * d + k] / static_cast<double>(d);
      t.m_inverse.push_back(r * (1 + m_square));
      for (int64_t m = 0; m < K; ++m) {
        const double fixed = m > n ? static_beta[i] : static_alpha[i * (n + 1) + m];
        double z = offsets[m], m_z = std::fabs(offsets[m]);
        for (int64_t k = 0; k < d; ++k) {
          z += t.x[i * d + k] * projections[m * d + k];
          m_z += t.m_x[i * d + k] * std::fabs(projections[m * d + k]);
        }
        const double f = c.use_tanh ? std::tanh(z) : z, scale = c.dynamic ? scales[m > n ? 1 : 0] : 0;
        t.z.push_back(z);
        t.m_z.push_back(m_z);
        t.f.push_back(f);
        t.coefficient.push_back(fixed + scale * f);
        t.m_coefficient.push_back(std::fabs(fixed) + std::fabs(scale) * (1 + m_z));
      }
    }
    return t;
  }
};

}  // namespace satformer::ops::cuda
