#pragma once
// What the test of qk_norm_rope_mix's kernels needs: inputs of every size, layout and mix.
#include <string>
#include <utility>
#include <vector>

#include "csrc/cuda/qk_norm_rope_mix_launch.h"
#include "tests/cuda_host/gate_formulas.h"
#include "tests/cuda_host/operands.h"

namespace satformer::ops::cuda {

using cuda_host::as_double;
using cuda_host::Buffer;
using cuda_host::Expected;
using cuda_host::RowGates;

constexpr double kUlps = 16;  // a few roundings, and the errors of exp, tanh and rsqrt (about 2 units each)
constexpr double kEps = 1e-5;

struct Case {
  int64_t B, T, H, H_kv, hd;
  ValueMix mix = ValueMix::kSelective;
  Gate gate = Gate::kRelu;
  bool norm = true;
  bool tables_by_row = false;
  int64_t padding = 0;  // numbers after each row of the projection: 4 leaves 8-byte loads of 2-byte types, 1 none
  size_t shift = 0;     // elements by which the buffers leave the 16-byte grid
  std::string text() const {
    std::string text = cuda_host::kGateNames[static_cast<int>(gate)];
    for (const int64_t n : {B, T, H, H_kv, hd, static_cast<int64_t>(mix), padding}) text += " " + std::to_string(n);
    return text + (norm ? " norm" : "") + (tables_by_row ? " tables by row" : "") + (shift ? " shifted: " : ": ");
  }
  Sizes q_sizes() const { return {B, T, H, hd}; }
  Sizes kv_sizes() const { return {B, T, H_kv, hd}; }
  int64_t tokens() const { return B * T; }
  int64_t width() const { return (H + 2 * H_kv) * hd + padding; }
};

// q, k and v in a projection [B, T, (H + 2 H_kv) hd + padding].
struct ProjectionViews {
  View q, k, v;
  explicit ProjectionViews(const Case& c) {
    const Strides s{c.T * c.width(), c.width(), c.hd};
    const auto at_head = [&](int64_t h) { return View{s, static_cast<size_t>(h * c.hd)}; };
    q = at_head(0), k = at_head(c.H), v = at_head(c.H + c.H_kv);
  }
};

template <typename T>
Source source(Numbers<T>& numbers, const View& view) {
  return {numbers.data() + view.offset, view.strides};
}
template <typename T>
Target target(Buffer<T>& numbers, const View& view) {
  return {numbers.data() + view.offset, view.strides};
}

// T: the values' type, L: the logits'.
template <typename T, typename L>
struct Inputs {
  Case c;
  ProjectionViews views;
  View first_view, grad_q_view, grad_kv_view;
  Numbers<T> projection, first, grad_q, grad_k, grad_v;
  Numbers<L> logits;  // every second column of a wider matrix
  Numbers<float> angles, cos, sin, q_weight, k_weight, lambdas;

  explicit Inputs(const Case& test_case)
      : c(test_case),
        views(c),
        first_view(views.k),  // the first layer's projection holds it, say
        grad_q_view(heads_first(c.q_sizes())),
        grad_kv_view(heads_first(c.kv_sizes())),
        projection("projection", c.tokens() * c.width(), 1, c.shift),
        first("first_values", c.tokens() * c.width(), 2, c.shift),
        grad_q("grad_q", c.tokens() * c.H * c.hd, 3, c.shift),
        grad_k("grad_k", c.tokens() * c.H_kv * c.hd, 4, c.shift),
        grad_v("grad_v", c.tokens() * c.H_kv * c.hd, 5, c.shift),
        logits("logits", 2 * c.tokens() * c.H_kv, 6),
        angles("angles", table_rows() * c.hd / 2, 7),
        cos("cos", table_rows() * c.hd / 2, 8),
        sin("sin", table_rows() * c.hd / 2, 9),
        q_weight("q_weight", c.hd, 10),
        k_weight("k_weight", c.hd, 11),
        lambdas("lambdas", 2, 12) {
    for (size_t i = 0; i < angles.host.size(); ++i) {
      cos.device[i] = cos.host[i] = std::cos(3 * angles.host[i]);
      sin.device[i] = sin.host[i] = std::sin(3 * angles.host[i]);
    }
  }

  int64_t table_rows() const { return c.tables_by_row ? c.tokens() : c.T; }
  size_t table_row(int64_t b, int64_t t) const {
    return static_cast<size_t>((c.tables_by_row ? b * c.T + t : t) * c.hd / 2);
  }
  RowGates gates(int64_t b, int64_t t) const {
    std::vector<double> x;
    for (int64_t h = 0; h < c.H_kv; ++h) x.push_back(logits[2 * static_cast<size_t>((b * c.T + t) * c.H_kv + h)]);
    return cuda_host::gates_of_logits(c.gate, x);
  }
  // The factors of first values and of v itself.
  std::pair<double, double> factors(const RowGates& gates, int64_t h) const {
    if (c.mix == ValueMix::kSelective) return {gates.alpha[static_cast<size_t>(h)], 1};
    if (c.mix == ValueMix::kStatic) return {lambdas[0], lambdas[1]};
    return {0, 1};
  }

  AttentionPass pass() {
    AttentionPass p{};
    p.B = c.B, p.T = c.T, p.H = c.H, p.H_kv = c.H_kv, p.hd = c.hd;
    p.dtype = dtype_of<T>();
    p.cos = {cos.data(), c.tables_by_row ? c.T * c.hd / 2 : 0, c.hd / 2};
    p.sin = {sin.data(), p.cos.stride_b, p.cos.stride_t};
    if (c.norm) p.q_weight = q_weight.data(), p.k_weight = k_weight.data();
    p.eps = static_cast<float>(kEps);
    p.mix = c.mix;
    p.gate = c.gate;
    if (c.mix != ValueMix::kNone) p.first_values = source(first, first_view);
    if (c.mix == ValueMix::kSelective) p.logits = {logits.data(), dtype_of<L>(), logit_strides()};
    if (c.mix == ValueMix::kStatic) p.lambda1 = lambdas.data(), p.lambda2 = lambdas.data() + 1;
    return p;
  }
  Strides logit_strides() const { return {2 * c.T * c.H_kv, 2 * c.H_kv, 2}; }
};

}  // namespace satformer::ops::cuda
