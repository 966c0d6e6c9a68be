#pragma once
// The gates of csrc/ops/gate.h in float64, from their definitions.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "csrc/ops/gate.h"

namespace cuda_host {

using satformer::ops::Gate;

constexpr Gate kGates[] = {Gate::kRelu,           Gate::kSigmoid, Gate::kSoftmax,
                           Gate::kSoftmaxSigmoid, Gate::kTanh,    Gate::kIdentity};
constexpr const char* kGateNames[] = {"relu", "sigmoid", "softmax", "softmax_sigmoid", "tanh", "identity"};

struct RowGates {
  std::vector<double> softmax, sigmoid, alpha;  // of a token's heads
};

inline RowGates gates_of_logits(Gate gate, const std::vector<double>& logits) {
  const double heads = static_cast<double>(logits.size());
  RowGates row;
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (const double x : logits) {
    const double p = std::exp(x) / sum, s = 1 / (1 + std::exp(-x));
    const double alpha[] = {std::max(x, 0.0), s, p * heads, p * heads * s, std::tanh(x), x};
    row.softmax.push_back(p);
    row.sigmoid.push_back(s);
    row.alpha.push_back(alpha[static_cast<int>(gate)]);
  }
  return row;
}

// d logits from m = d alpha of a token's heads: alpha_j depends on x_j alone, or on all heads.
inline std::vector<double> logit_gradients(Gate gate, const RowGates& row, const std::vector<double>& m) {
  const std::size_t heads = m.size();
  std::vector<double> result(heads);
  for (std::size_t j = 0; j < heads; ++j) {
    double over_heads = 0;  // sum_h d alpha_h / d x_j, of the softmax alone
    for (std::size_t h = 0; h < heads; ++h) over_heads += m[h] * row.alpha[h] * ((h == j ? 1 : 0) - row.softmax[j]);
    const double a = row.alpha[j], s = row.sigmoid[j];
    const double by_gate[] = {
        a > 0 ? m[j] : 0, a * (1 - a) * m[j], over_heads, over_heads + m[j] * a * (1 - s), (1 - a * a) * m[j], m[j]};
    result[j] = by_gate[static_cast<int>(gate)];
  }
  return result;
}

}  // namespace cuda_host
