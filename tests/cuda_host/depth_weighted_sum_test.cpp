// depth_weighted_sum's CUDA kernels and launchers against the formulas of csrc/ops/depth_weighted_sum.h in float64.
#include "tests/cuda_host/testing.h"

#include <memory>

#include "csrc/cuda/depth_weighted_sum.cu"

namespace satformer::ops::cuda {

CUDA_HOST_DYNAMIC_SHARED(float, memory);

namespace {

using cuda_host::Buffer;
using cuda_host::Expected;
using Numbers = std::vector<double>;

template <typename T>
constexpr DType dtype_of() {
  return std::is_same_v<T, float> ? DType::kFloat32 : std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16;
}

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

template <typename T>
struct Values {
  std::vector<T> host;
  std::unique_ptr<Buffer<T>> device;
  Values(const char* name, int64_t count, unsigned seed, size_t shift = 0)
      : host(cuda_host::normal<T>(static_cast<size_t>(count), seed)),
        device(std::make_unique<Buffer<T>>(host, name, shift)) {}
  double operator[](int64_t i) const { return cuda_host::as_double(host[static_cast<size_t>(i)]); }
  T* data() { return device->data(); }
};

constexpr float kEps = 1e-3F;

// The sums of one token and the gradients of them, with the magnitudes that errors are relative to.
struct Token {
  std::vector<Numbers> s, m, G, m_G;  // [C][d]
  Numbers r, rho;                     // [C]: the inverse rms of a sum, its relative error
};

template <typename T>
struct Inputs {
  Case c;
  int64_t row;
  std::vector<Values<T>> sources, grads, before;
  std::vector<Values<float>> norm_weights, inverse, output_norm_weights;
  Values<T> base;
  Values<float> weights;

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
      Numbers s(d), m(d), G(d), m_G(d);
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

template <typename T>
void check_forward(const Case& c) {
  Inputs<T> in(c);
  std::vector<std::vector<Expected>> expected(static_cast<size_t>(c.C));
  for (int64_t token = 0; token < c.tokens(); ++token) {
    const Token t = in.formulas(token);
    for (int i = 0; i < c.C; ++i) {
      for (int64_t k = 0; k < c.d; ++k) {
        const double base = c.base ? in.base[token * c.d + k] : 0, s = t.s[i][k], m = t.m[i][k], p = in.p(i, k);
        Expected e{s + base, m + std::fabs(base)};
        if (c.output_norms) {
          e = {p * t.r[i] * s + base, std::fabs(p) * t.r[i] * (m + std::fabs(s) * (1 + t.rho[i])) + std::fabs(base)};
        }
        expected[i].push_back(e);
      }
    }
  }
  std::vector<std::unique_ptr<Buffer<T>>> buffers;
  DepthSumOutputsLaunch out{};
  for (int i = 0; i < c.C; ++i) {
    buffers.push_back(std::make_unique<Buffer<T>>(expected[i].size(), "out"));
    out.out[i] = buffers[i]->data();
  }
  CHECK(launch_depth_sum(in.launch(), out, nullptr) == cudaSuccess, c.text());
  for (int i = 0; i < c.C; ++i) CHECK_CLOSE(c.text() + "out", buffers[i]->data(), expected[i], c.ulps());
}

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
  const auto add = [](Expected& to, double value, double magnitude) {
    to.value += value;
    to.magnitude += std::fabs(magnitude);
  };
  for (size_t token = 0; token < tokens; ++token) {
    const int64_t at = static_cast<int64_t>(token);
    const Token t = in.formulas(at);
    for (size_t k = 0; k < d; ++k) {
      const int64_t column = static_cast<int64_t>(k);
      for (size_t i = 0; i < C; ++i) {
        const int way = static_cast<int>(i);
        const double grad = in.grad(at, way, column), G = t.G[i][k], m_G = t.m_G[i][k];
        add(out.base[token * d + k], grad, grad);
        add(out.output_norm_weights[i * d + k], grad * t.r[i] * t.s[i][k],
            grad * t.r[i] * (std::fabs(t.s[i][k]) * (1 + t.rho[i]) + t.m[i][k]));
        for (size_t j = 0; j < S; ++j) {
          const int source = static_cast<int>(j);
          const double x = in.x(at, source, column), g = in.g(source, column), r = in.r(at, source),
                       w = in.w(at, way, source);
          add(out.sources[j][token * d + k], g * r * w * G, g * r * w * m_G);
          add(out.weights[((c.per_token ? token : 0) * C + i) * S + j], r * g * x * G, r * g * x * m_G);
          add(out.inverse[j * tokens + token], w * g * x * G, w * g * x * m_G);
          add(out.norm_weights[j * d + k], r * x * w * G, r * x * w * m_G);
        }
      }
    }
  }
  return out;
}

template <typename T>
void check_backward(const Case& c, bool adds) {
  Inputs<T> in(c);
  Gradients expected = gradients_of(in);
  DepthSumBackwardLaunch out{};
  out.writes_sources = true, out.add_to_sources = adds;
  for (int i = 0; i < c.C; ++i) out.grads[i] = {in.grads[i].data(), c.T * c.d, c.d};
  std::vector<std::unique_ptr<Buffer<T>>> fresh;
  std::vector<std::vector<Expected>> in_place;
  for (int j = 0; j < c.S; ++j) {
    fresh.push_back(std::make_unique<Buffer<T>>(expected.sources[j].size(), "grad_source"));
    out.sources[j] =
        adds ? WriteRows{in.before[j].data(), c.T * in.row, in.row} : WriteRows{fresh[j]->data(), c.T * c.d, c.d};
    in_place.emplace_back();
    for (const T& x : in.before[j].host) in_place[j].push_back({cuda_host::as_double(x), 0});
    for (int64_t token = 0; token < c.tokens(); ++token) {
      for (int64_t k = 0; k < c.d; ++k) {
        Expected& e = in_place[j][static_cast<size_t>(token * in.row + k)];
        const Expected& more = expected.sources[j][static_cast<size_t>(token * c.d + k)];
        e = {e.value + more.value, std::fabs(e.value) + more.magnitude};
      }
    }
  }
  const size_t chunks = static_cast<size_t>(depth_sum_chunks(c.tokens()));
  Buffer<T> base(expected.base.size(), "grad_base");
  Buffer<float> weights(expected.weights.size(), "grad_weights"), inverse(expected.inverse.size(), "grad_inverse"),
      norm_weights(expected.norm_weights.size(), "grad_norm_weights"),
      output_norm_weights(expected.output_norm_weights.size(), "grad_output_norm_weights"),
      weight_partials(chunks * c.C * c.S, "weight_partials"),
      norm_partials(chunks * static_cast<size_t>((c.S + c.C) * c.d), "norm_partials"),
      statistics(static_cast<size_t>(c.tokens() * c.C * 2), "statistics");
  out.base = c.base ? base.data() : nullptr;
  out.weights = weights.data();
  out.weight_partials = c.per_token ? nullptr : weight_partials.data();
  if (c.source_norms) out.inverse_rms = inverse.data(), out.norm_weights = norm_weights.data();
  if (c.output_norms) out.output_norm_weights = output_norm_weights.data(), out.output_statistics = statistics.data();
  if (c.source_norms || c.output_norms) out.norm_partials = norm_partials.data();
  CHECK(launch_depth_sum_backward(in.launch(), out, nullptr) == cudaSuccess, c.text());
  for (int j = 0; j < c.S; ++j) {
    if (adds) {
      CHECK_CLOSE(c.text() + "added", in.before[j].data(), in_place[j], c.ulps());
    } else {
      CHECK_CLOSE(c.text() + "sources", fresh[j]->data(), expected.sources[j], c.ulps());
    }
  }
  if (c.base) CHECK_CLOSE(c.text() + "base", base.data(), expected.base, c.ulps());
  CHECK_CLOSE(c.text() + "weights", weights.data(), expected.weights, c.sum_ulps());
  if (c.source_norms) {
    CHECK_CLOSE(c.text() + "inverse", inverse.data(), expected.inverse, c.ulps());
    CHECK_CLOSE(c.text() + "norm_weights", norm_weights.data(), expected.norm_weights, c.sum_ulps());
  }
  if (c.output_norms) {
    CHECK_CLOSE(c.text() + "output_norm_weights", output_norm_weights.data(), expected.output_norm_weights,
                c.sum_ulps());
  }
}

template <typename Check>
void check_sizes(const Check& check) {
  int turn = 0;
  for (const Case& size :
       {Case{1, 1, 1, 1, 1}, Case{2, 2, 40, 3, 1}, Case{1, 3, 21, 5, 4}, Case{2, 2, 64, 9, 4}, Case{1, 2, 300, 2, 3},
        Case{1, 1, 2056, 2, 4}, Case{1, 2, 24, 2, 7}, Case{1, 2, 9, 3, 8}, Case{0, 2, 8, 2, 4}}) {
    for (int form = 0; form < 4; ++form) {
      Case c = size;
      c.source_norms = form & 1, c.output_norms = form & 2, c.base = turn % 3 != 0, c.per_token = turn % 2 == 0;
      c.shift = turn % 5 == 4 ? 1 : 0, c.gap = turn % 4 == 1 ? 8 : turn % 4 == 2 ? 3 : 0;
      ++turn;
      check(c);
    }
  }
}

template <typename T>
void check_inverse_rms() {
  for (const int64_t d : {1, 21, 64, 2056}) {
    for (const int64_t gap : {0, 3, 8}) {
      const int64_t rows = 3, stride = d + gap;
      Values<T> x("x", rows * stride, 1);
      Values<float> grad("grad", rows, 2);
      std::vector<Expected> inverse, to_x;
      std::vector<float> kept;
      for (int64_t i = 0; i < rows; ++i) {
        double square = 0;
        for (int64_t k = 0; k < d; ++k) square += x[i * stride + k] * x[i * stride + k] / static_cast<double>(d);
        const double r = 1 / std::sqrt(square + static_cast<double>(kEps));
        inverse.push_back({r, r});
        kept.push_back(static_cast<float>(r));
        for (int64_t k = 0; k < d; ++k) {
          const double value = -grad[i] * r * r * r / static_cast<double>(d) * x[i * stride + k];
          to_x.push_back({value, std::fabs(value)});
        }
      }
      Buffer<float> out(inverse.size(), "inverse"), kept_buffer(kept, "kept");
      Buffer<T> grad_x(to_x.size(), "grad_x");
      InverseRmsLaunch a{rows, d, stride, dtype_of<T>(), x.data(), kEps, out.data(), nullptr, nullptr};
      CHECK(launch_inverse_rms(a, nullptr) == cudaSuccess, "");
      CHECK_CLOSE("inverse", out.data(), inverse, 16 + static_cast<double>(d));
      a.inverse = kept_buffer.data(), a.grad = grad.data(), a.grad_x = grad_x.data();
      CHECK(launch_inverse_rms_backward(a, nullptr) == cudaSuccess, "");
      CHECK_CLOSE("grad_x", grad_x.data(), to_x, 16);
    }
  }
}

}  // namespace

CUDA_HOST_TEST(forward_float32) { check_sizes(check_forward<float>); }
CUDA_HOST_TEST(forward_bfloat16) { check_sizes(check_forward<__nv_bfloat16>); }
CUDA_HOST_TEST(forward_float16) { check_sizes(check_forward<__half>); }
CUDA_HOST_TEST(backward_float32) {
  check_sizes([](const Case& c) { check_backward<float>(c, false); });
}
CUDA_HOST_TEST(backward_bfloat16) {
  check_sizes([](const Case& c) { check_backward<__nv_bfloat16>(c, false); });
}
CUDA_HOST_TEST(backward_float16) {
  check_sizes([](const Case& c) { check_backward<__half>(c, false); });
}
CUDA_HOST_TEST(backward_adds) {
  check_sizes([](const Case& c) { check_backward<float>(c, true); });
  check_sizes([](const Case& c) { check_backward<__nv_bfloat16>(c, true); });
}
CUDA_HOST_TEST(backward_several_tokens_a_chunk) {
  check_backward<float>({1, 1100, 5, 2, 2, false, true, true, true}, false);
}
CUDA_HOST_TEST(most_sources) {
  check_forward<float>({1, 2, 8, kMaxSources, kMaxWays, true, true, true, true});
  check_backward<float>({1, 2, 8, kMaxSources, kMaxWays, true, true, true, true}, false);
}
CUDA_HOST_TEST(inverse_rms_of_every_type) {
  check_inverse_rms<float>();
  check_inverse_rms<__nv_bfloat16>();
  check_inverse_rms<__half>();
}

}  // namespace satformer::ops::cuda
