// qk_norm_rope_mix' CUDA kernels and launchers against the formulas of csrc/ops/qk_norm_rope_mix.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/qk_norm_rope_mix.cu"
#include "tests/cuda_host/gate_formulas.h"

namespace satformer::ops::cuda {
namespace {

using cuda_host::as_double;
using cuda_host::Buffer;
using cuda_host::Expected;
using cuda_host::RowGates;

constexpr double kUlps = 16;  // a few roundings, and the errors of exp, tanh and rsqrt (about 2 units each)
constexpr double kEps = 1e-5;

template <typename T>
constexpr DType dtype_of() {
  return std::is_same_v<T, float> ? DType::kFloat32 : std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16;
}

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
  int64_t tokens() const { return B * T; }
  int64_t width() const { return (H + 2 * H_kv) * hd + padding; }
};

// [B, T, heads, hd] numbers in a buffer.
struct View {
  Strides strides;
  int64_t offset;
  size_t at(int64_t b, int64_t t, int64_t h, int64_t i = 0) const {
    return static_cast<size_t>(offset + b * strides.b + t * strides.t + h * strides.h + i);
  }
};

// q, k and v in a projection [B, T, (H + 2 H_kv) hd + padding].
struct ProjectionViews {
  View q, k, v;
  explicit ProjectionViews(const Case& c) {
    const Strides s{c.T * c.width(), c.width(), c.hd};
    q = {s, 0}, k = {s, c.H * c.hd}, v = {s, (c.H + c.H_kv) * c.hd};
  }
};

View contiguous(const Case& c, int64_t heads) { return {{c.T * heads * c.hd, heads * c.hd, c.hd}, 0}; }
View heads_first(const Case& c, int64_t heads) { return {{heads * c.T * c.hd, c.hd, c.T * c.hd}, 0}; }

template <typename T>
struct Numbers {
  std::vector<T> host;
  Buffer<T> device;
  Numbers(const char* name, int64_t n, unsigned seed, size_t shift = 0)
      : host(cuda_host::normal<T>(static_cast<size_t>(n), seed)), device(host, name, shift) {}
  double operator[](size_t i) const { return as_double(host[i]); }
  Source source(const View& view) { return {device.data() + view.offset, view.strides}; }
};

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
        first_view{{c.T * c.width(), c.width(), c.hd}, c.H * c.hd},  // the first layer's projection holds it, say
        grad_q_view(heads_first(c, c.H)),
        grad_kv_view(heads_first(c, c.H_kv)),
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
    p.cos = {cos.device.data(), c.tables_by_row ? c.T * c.hd / 2 : 0, c.hd / 2};
    p.sin = {sin.device.data(), p.cos.stride_b, p.cos.stride_t};
    if (c.norm) p.q_weight = q_weight.device.data(), p.k_weight = k_weight.device.data();
    p.eps = static_cast<float>(kEps);
    p.mix = c.mix;
    p.gate = c.gate;
    if (c.mix != ValueMix::kNone) p.first_values = first.source(first_view);
    if (c.mix == ValueMix::kSelective) p.logits = {logits.device.data(), dtype_of<L>(), logit_strides()};
    if (c.mix == ValueMix::kStatic) p.lambda1 = lambdas.device.data(), p.lambda2 = lambdas.device.data() + 1;
    return p;
  }
  Strides logit_strides() const { return {2 * c.T * c.H_kv, 2 * c.H_kv, 2}; }
};

template <typename F>
void for_each_row(const Case& c, int64_t heads, F f) {
  for (int64_t b = 0; b < c.B; ++b)
    for (int64_t t = 0; t < c.T; ++t)
      for (int64_t h = 0; h < heads; ++h) f(b, t, h);
}

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

Row abs_of(Row x) {
  for (double& a : x) a = std::fabs(a);
  return x;
}

template <typename N>
Row row_of_numbers(const N& numbers, const View& view, int64_t b, int64_t t, int64_t h, int64_t hd) {
  Row x;
  for (int64_t i = 0; i < hd; ++i) x.push_back(numbers[view.at(b, t, h, i)]);
  return x;
}

double inverse_rms_of(const Row& x) {
  double squares = 0;
  for (const double a : x) squares += a * a;
  return 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
}

// --- forward ---------------------------------------------------------------------------------------------------
template <typename T, typename L>
void check_forward(const Case& c) {
  Inputs<T, L> in(c);
  const View q_view = contiguous(c, c.H), kv_view = contiguous(c, c.H_kv);
  const size_t q_size = static_cast<size_t>(c.tokens() * c.H * c.hd),
               kv_size = static_cast<size_t>(c.tokens() * c.H_kv * c.hd);
  Buffer<T> q(q_size, "q'", c.shift), k(kv_size, "k'", c.shift), v(kv_size, "v'", c.shift);
  std::vector<Expected> q_expected(q_size), k_expected(kv_size), v_expected(kv_size);
  const auto head = [&](const View& view, const Numbers<float>& weight, const View& out,
                        std::vector<Expected>& expected) {
    return [&, view, out](int64_t b, int64_t t, int64_t h) {
      Row x = row_of_numbers(in.projection, view, b, t, h, c.hd);
      const double r = inverse_rms_of(x);
      for (size_t i = 0; c.norm && i < x.size(); ++i) x[i] *= r * weight[i];
      const auto [y, magnitude] = rotate(in, x, abs_of(x), 1, b, t);
      for (size_t i = 0; i < x.size(); ++i) expected[out.at(b, t, h) + i] = {y[i], magnitude[i]};
    };
  };
  for_each_row(c, c.H, head(in.views.q, in.q_weight, q_view, q_expected));
  for_each_row(c, c.H_kv, head(in.views.k, in.k_weight, kv_view, k_expected));
  for_each_row(c, c.H_kv, [&](int64_t b, int64_t t, int64_t h) {
    const auto [first, own] = in.factors(in.gates(b, t), h);
    for (int64_t i = 0; i < c.hd; ++i) {
      const double x = own * in.projection[in.views.v.at(b, t, h, i)],
                   y = first * in.first[in.first_view.at(b, t, h, i)];
      v_expected[kv_view.at(b, t, h, i)] = {x + y, std::fabs(x) + std::fabs(y)};
    }
  });
  const MixInputsArguments a{in.pass(),
                             in.projection.source(in.views.q),
                             in.projection.source(in.views.k),
                             in.projection.source(in.views.v),
                             {q.data(), q_view.strides},
                             {k.data(), kv_view.strides},
                             {v.data(), kv_view.strides}};
  CHECK(launch_qk_norm_rope_mix(a, nullptr) == cudaSuccess, c.text());
  const double ulps = kUlps + static_cast<double>(c.hd);  // one rounding for each term of the sum of squares
  CHECK_CLOSE(c.text() + "q'", q.data(), q_expected, ulps);
  CHECK_CLOSE(c.text() + "k'", k.data(), k_expected, ulps);
  CHECK_CLOSE(c.text() + "v'", v.data(), v_expected, kUlps);
}

// --- backward --------------------------------------------------------------------------------------------------
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
  for_each_row(c, heads, [&](int64_t b, int64_t t, int64_t h) {
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
      of_weight[i].value += g[i] * n;
      of_weight[i].magnitude += m[i] * std::fabs(n);
    }
  });
}

template <typename In>
void value_gradients(const In& in, Gradients& out) {
  const Case& c = in.c;
  const View kv_view = contiguous(c, c.H_kv);
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
          out.lambdas[1].value += g * v, out.lambdas[1].magnitude += std::fabs(g * v);
        }
        out.lambdas[0].value += dot, out.lambdas[0].magnitude += size;
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

// F: the dtype that the gradient of first values is written in, or added to.
template <typename T, typename L, typename F>
void check_backward(const Case& c, bool adds) {
  Inputs<T, L> in(c);
  Gradients expected;
  expected.packed.assign(in.projection.host.size(), cuda_host::untouched());  // the padding is nobody's
  head_gradients(in, in.views.q, in.grad_q_view, doubles(in.grad_q), in.q_weight, c.H, expected.packed,
                 expected.q_weight);
  head_gradients(in, in.views.k, in.grad_kv_view, doubles(in.grad_k), in.k_weight, c.H_kv, expected.packed,
                 expected.k_weight);
  value_gradients(in, expected);

  const View kv_view = contiguous(c, c.H_kv);
  Buffer<T> packed(in.projection.host.size(), "packed gradient", c.shift);
  Buffer<L> logits(in.logits.host.size(), "logits gradient");
  Numbers<F> first("first values' gradient", c.tokens() * c.H_kv * c.hd, 13, c.shift);
  for (size_t i = 0; adds && i < expected.first.size(); ++i) {
    expected.first[i].value += first[i];
    expected.first[i].magnitude += std::fabs(first[i]);
  }
  MixInputsBackwardArguments a{};
  a.pass = in.pass();
  const int64_t blocks = backward_blocks(a.pass);
  Buffer<float> q_sums(static_cast<size_t>(blocks * c.hd), "q_sums"),
      k_sums(static_cast<size_t>(blocks * c.hd), "k_sums");
  Buffer<float> lambda_sums(static_cast<size_t>(blocks * 2), "lambda_sums");
  Buffer<float> dots(static_cast<size_t>(c.tokens() * c.H_kv), "dots");
  Buffer<float> q_weight(expected.q_weight.size(), "q_weight's gradient");
  Buffer<float> k_weight(expected.k_weight.size(), "k_weight's gradient"), lambdas(2, "lambdas' gradient");
  const auto target = [&](const View& view) { return Target{packed.data() + view.offset, view.strides}; };
  a.q = in.projection.source(in.views.q), a.k = in.projection.source(in.views.k);
  a.v = in.projection.source(in.views.v);
  a.grad_q = in.grad_q.source(in.grad_q_view), a.grad_k = in.grad_k.source(in.grad_kv_view);
  a.grad_v = in.grad_v.source(in.grad_kv_view);
  a.to_q = target(in.views.q), a.to_k = target(in.views.k), a.to_v = target(in.views.v);
  if (c.mix == ValueMix::kSelective) a.to_logits = {logits.data(), in.logit_strides()};
  if (is_over_heads(c.gate)) a.dots = dots.data();
  if (c.mix != ValueMix::kNone) a.to_first_values = {first.device.data(), kv_view.strides};
  a.first_values_dtype = dtype_of<F>();
  a.adds_first_values = adds;
  if (c.norm) {
    a.q_weight_grad = q_weight.data(), a.k_weight_grad = k_weight.data();
    a.q_sums = q_sums.data(), a.k_sums = k_sums.data();
  }
  if (c.mix == ValueMix::kStatic) {
    a.lambda1_grad = lambdas.data(), a.lambda2_grad = lambdas.data() + 1;
    a.lambda_sums = lambda_sums.data();
  }
  CHECK(launch_qk_norm_rope_mix_backward(a, nullptr) == cudaSuccess, c.text());
  // One rounding for each term of a sum: over hd twice, and over all rows.
  const double row = kUlps + 2 * static_cast<double>(c.hd);
  const double kv_rows = static_cast<double>(c.tokens() * c.H_kv), q_rows = static_cast<double>(c.tokens() * c.H);
  CHECK_CLOSE(c.text() + "packed gradient", packed.data(), expected.packed, row);
  if (c.mix == ValueMix::kSelective) CHECK_CLOSE(c.text() + "logits", logits.data(), expected.logits, row);
  if (c.mix != ValueMix::kNone) CHECK_CLOSE(c.text() + "first values", first.device.data(), expected.first, kUlps);
  if (c.norm) CHECK_CLOSE(c.text() + "q_weight", q_weight.data(), expected.q_weight, row + q_rows);
  if (c.norm) CHECK_CLOSE(c.text() + "k_weight", k_weight.data(), expected.k_weight, row + kv_rows);
  if (c.mix == ValueMix::kStatic) CHECK_CLOSE(c.text() + "lambdas", lambdas.data(), expected.lambdas, row + kv_rows);
}

constexpr Case kCases[] = {{2, 5, 4, 4, 64}, {2, 3, 6, 2, 30},  {1, 7, 8, 1, 16},  {3, 1, 2, 2, 2},
                           {1, 9, 3, 3, 6},  {1, 3, 2, 1, 128}, {1, 2, 2, 1, 512}, {1, 2, 1, 1, 34},
                           {0, 3, 4, 2, 8},  {2, 0, 4, 2, 8},   {2, 3, 4, 0, 8}};

// Every size with every mix and gate; alignment, norm and tables in turn.
template <typename T, typename L>
void check_cases() {
  int turn = 0;
  for (Case c : kCases) {
    for (const ValueMix mix : {ValueMix::kNone, ValueMix::kSelective, ValueMix::kStatic}) {
      for (const Gate gate : cuda_host::kGates) {
        if (mix != ValueMix::kSelective && gate != Gate::kRelu) continue;
        constexpr int64_t kPaddings[] = {0, 4, 1, 0};
        c.mix = mix, c.gate = gate;
        c.padding = kPaddings[turn % 4], c.shift = turn % 4 == 3 ? 1 : 0;
        c.norm = turn % 3 != 0, c.tables_by_row = turn % 5 < 2;
        check_forward<T, L>(c);
        if (turn % 2 == 0) {
          check_backward<T, L, T>(c, turn % 7 < 3);
        } else {
          check_backward<T, L, float>(c, /*adds=*/true);
        }
        ++turn;
      }
    }
  }
}

// Null first values under closed gates and a zero lambda1, forward and backward.
template <typename T>
void check_closed(ValueMix mix, int64_t hd) {
  Case c{2, 3, 2, 2, hd, mix};
  Inputs<T, float> in(c);
  for (size_t i = 0; i < in.logits.host.size(); ++i) in.logits.device[i] = i % 3 == 0 ? 0.f : -1.f;
  in.lambdas.device[0] = 0.f, in.lambdas.device[1] = 1.f;
  const View q_view = contiguous(c, c.H), kv_view = contiguous(c, c.H_kv);
  const size_t size = static_cast<size_t>(c.tokens() * c.H_kv * c.hd);
  Buffer<T> q(size, "q'"), k(size, "k'"), v(size, "v'");
  AttentionPass pass = in.pass();
  pass.first_values.data = nullptr;
  const MixInputsArguments forward{pass,
                                   in.projection.source(in.views.q),
                                   in.projection.source(in.views.k),
                                   in.projection.source(in.views.v),
                                   {q.data(), q_view.strides},
                                   {k.data(), kv_view.strides},
                                   {v.data(), kv_view.strides}};
  CHECK(launch_qk_norm_rope_mix(forward, nullptr) == cudaSuccess, c.text());
  for_each_row(c, c.H_kv, [&](int64_t b, int64_t t, int64_t h) {
    for (int64_t i = 0; i < hd; ++i) {
      const double expected = in.projection[in.views.v.at(b, t, h, i)];
      CHECK(as_double(v[kv_view.at(b, t, h, i)]) == expected, "v must come out as it is");
    }
  });
  Buffer<T> packed(in.projection.host.size(), "packed gradient"), first(size, "first values' gradient");
  Buffer<float> logits(in.logits.host.size(), "logits gradient");
  const auto target = [&](const View& view) { return Target{packed.data() + view.offset, view.strides}; };
  MixInputsBackwardArguments a{};
  a.pass = pass;
  a.q = forward.q, a.k = forward.k;
  a.grad_q = in.grad_q.source(in.grad_q_view), a.grad_k = in.grad_k.source(in.grad_kv_view);
  a.grad_v = in.grad_v.source(in.grad_kv_view);
  a.to_q = target(in.views.q), a.to_k = target(in.views.k), a.to_v = target(in.views.v);
  if (mix == ValueMix::kSelective) a.to_logits = {logits.data(), in.logit_strides()};
  a.to_first_values = {first.data(), kv_view.strides};
  a.first_values_dtype = pass.dtype;
  CHECK(launch_qk_norm_rope_mix_backward(a, nullptr) == cudaSuccess, c.text());
  CHECK_CLOSE("first values", first.data(), std::vector<Expected>(size, Expected{0, 0}), 0);
  for (size_t i = 0; mix == ValueMix::kSelective && i < in.logits.host.size(); i += 2) CHECK(logits[i] == 0, "logits");
}

}  // namespace

CUDA_HOST_TEST(float32_values_and_gradients) { check_cases<float, float>(); }
CUDA_HOST_TEST(bfloat16_values_and_gradients) {
  check_cases<__nv_bfloat16, float>();
  check_cases<__nv_bfloat16, __nv_bfloat16>();
}
CUDA_HOST_TEST(float16_values_and_gradients) { check_cases<__half, __half>(); }

CUDA_HOST_TEST(closed_gates_do_not_read_first_values) {
  for (const int64_t hd : {2, 16, 64}) {
    for (const ValueMix mix : {ValueMix::kSelective, ValueMix::kStatic}) {
      check_closed<float>(mix, hd);
      check_closed<__nv_bfloat16>(mix, hd);
      check_closed<__half>(mix, hd);
    }
  }
}

// More rows than the largest grid of the backward pass has places for: blocks go on to further rows.
CUDA_HOST_TEST_ONCE(blocks_go_on_to_further_rows) {
  Case c{1, 1030, 8, 1, 64, ValueMix::kStatic};
  c.shift = 1;  // 32 threads a row
  check_backward<float, float, float>(c, /*adds=*/false);
}

CUDA_HOST_TEST(gradients_that_are_not_wanted) {
  Case c{2, 3, 2, 2, 16, ValueMix::kStatic};
  Inputs<float, float> in(c);
  Buffer<float> packed(in.projection.host.size(), "packed gradient"), lambda2(1, "lambda2's gradient");
  MixInputsBackwardArguments a{};
  a.pass = in.pass();
  Buffer<float> lambda_sums(static_cast<size_t>(backward_blocks(a.pass) * 2), "lambda_sums");
  const auto target = [&](const View& view) { return Target{packed.data() + view.offset, view.strides}; };
  a.q = in.projection.source(in.views.q), a.k = in.projection.source(in.views.k);
  a.v = in.projection.source(in.views.v);
  a.grad_q = in.grad_q.source(in.grad_q_view), a.grad_k = in.grad_k.source(in.grad_kv_view);
  a.grad_v = in.grad_v.source(in.grad_kv_view);
  a.to_q = target(in.views.q), a.to_k = target(in.views.k), a.to_v = target(in.views.v);
  a.lambda2_grad = lambda2.data(), a.lambda_sums = lambda_sums.data();
  a.pass.first_values.data = nullptr;  // neither lambda1's gradient nor that of first values is wanted
  CHECK(launch_qk_norm_rope_mix_backward(a, nullptr) == cudaSuccess, "");
  Gradients expected;
  expected.packed.resize(in.projection.host.size());
  value_gradients(in, expected);
  CHECK_CLOSE("lambda2", lambda2.data(), {expected.lambdas[1]}, kUlps + 16 + 12);
}

CUDA_HOST_TEST(what_the_kernels_do_not_serve_is_refused) {
  MixInputsArguments a{};
  MixInputsBackwardArguments b{};
  a.pass.B = a.pass.T = a.pass.H = a.pass.H_kv = 1;
  a.pass.hd = 2;
  a.pass.dtype = DType::kFloat64;
  b.pass = a.pass;
  CHECK(launch_qk_norm_rope_mix(a, nullptr) == cudaErrorInvalidValue, "float64");
  CHECK(launch_qk_norm_rope_mix_backward(b, nullptr) == cudaErrorInvalidValue, "float64");
  a.pass.dtype = b.pass.dtype = DType::kFloat32;
  for (const int64_t hd : {3, 514}) {
    a.pass.hd = b.pass.hd = hd;
    CHECK(launch_qk_norm_rope_mix(a, nullptr) == cudaErrorInvalidValue, std::to_string(hd));
    CHECK(launch_qk_norm_rope_mix_backward(b, nullptr) == cudaErrorInvalidValue, std::to_string(hd));
  }
}

}  // namespace satformer::ops::cuda
