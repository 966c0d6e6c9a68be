// The hyper-connections' CUDA kernels and launchers against the formulas of csrc/ops/hyper_connection.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/hyper_connection.cu"

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

// Device memory and the same numbers in float64.
template <typename T>
struct Values {
  std::vector<T> host;
  Buffer<T> device;
  Values(const char* name, int64_t count, unsigned seed, double size = 1, size_t shift = 0)
      : host(scaled(static_cast<size_t>(count), seed, size)), device(host, name, shift) {}
  static std::vector<T> scaled(size_t count, unsigned seed, double size) {
    std::vector<T> numbers = cuda_host::normal<T>(count, seed);
    for (T& x : numbers) x = cuda_host::from_double<T>(size * cuda_host::as_double(x));
    return numbers;
  }
  double operator[](int64_t i) const { return cuda_host::as_double(host[static_cast<size_t>(i)]); }
};

// What the formulas give for one token, and the magnitudes that errors are relative to (in tests/csrc's
// hyper_connection_support.cpp the same in tensors).
struct Token {
  Numbers x, m_x;                                 // normalised rows before the weight [n, d]
  Numbers inverse, m_inverse, mean, m_mean;       // [n]
  Numbers z, m_z, f, coefficient, m_coefficient;  // [n, n+2]
};

template <typename T>
struct Inputs {
  Case c;
  int64_t row;  // between the rows of the streams
  Values<T> streams, grad_input, grad_mixed;
  Values<float> static_alpha, static_beta, projections, offsets, scales, grad_beta;
  std::vector<float> host_means;
  Buffer<float> means;

  explicit Inputs(const Case& test_case)
      : c(test_case),
        row(c.d + c.gap),
        streams("streams", c.tokens() * c.n * row, 1, 1, c.shift),
        grad_input("grad_input", c.tokens() * c.d, 2),
        grad_mixed("grad_mixed", c.tokens() * c.n * c.d, 3),
        static_alpha("static_alpha", c.n * (c.n + 1), 4),
        static_beta("static_beta", c.n, 5),
        projections("projections", (c.n + 2) * c.d, 6, 1 / std::sqrt(static_cast<double>(c.d))),
        offsets("offsets", c.n + 2, 7, c.layer_norm ? 1 : 0),
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
    a.streams = {streams.device.data(), {c.T * c.n * row, c.n * row, row}};
    a.static_alpha = static_alpha.device.data();
    a.static_beta = static_beta.device.data();
    if (c.dynamic) {
      a.projections = projections.device.data();
      a.offsets = offsets.device.data();
      a.means = means.data();
      a.alpha_scale = scales.device.data();
      a.beta_scale = scales.device.data() + 1;
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

template <typename T>
void check_read(const Case& c) {
  Inputs<T> in(c);
  const int64_t n = c.n, d = c.d, K = n + 2, tokens = c.tokens();
  std::vector<Expected> input, mixed, beta, kept;
  for (int64_t token = 0; token < tokens; ++token) {
    const Token t = in.formulas(token);
    for (int64_t m = 0; m <= n; ++m) {
      for (int64_t k = 0; k < d; ++k) {
        Expected e{0, 0};
        for (int64_t i = 0; i < n; ++i) {
          e.value += t.coefficient[i * K + m] * in.h(token, i, k);
          e.magnitude += t.m_coefficient[i * K + m] * std::fabs(in.h(token, i, k));
        }
        (m == 0 ? input : mixed).push_back(e);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      beta.push_back({t.coefficient[i * K + n + 1], t.m_coefficient[i * K + n + 1]});
      for (int64_t m = 0; m < K; ++m) kept.push_back({t.z[i * K + m], t.m_z[i * K + m]});
      kept.push_back({t.inverse[i], t.m_inverse[i]});
      kept.push_back({t.mean[i], t.m_mean[i]});
    }
  }
  Buffer<T> out_input(input.size(), "input"), out_mixed(mixed.size(), "mixed");
  Buffer<float> out_beta(beta.size(), "beta"), out_kept(kept.size(), "kept");
  const cudaError_t error = launch_read(
      {in.launch(), out_input.data(), out_mixed.data(), out_beta.data(), c.dynamic ? out_kept.data() : nullptr},
      nullptr);
  CHECK(error == cudaSuccess, c.text());
  CHECK_CLOSE(c.text() + "input", out_input.data(), input, c.ulps());
  CHECK_CLOSE(c.text() + "mixed", out_mixed.data(), mixed, c.ulps());
  CHECK_CLOSE(c.text() + "beta", out_beta.data(), beta, c.ulps());
  if (c.dynamic) CHECK_CLOSE(c.text() + "kept", out_kept.data(), kept, c.ulps());
}

template <typename T>
void check_read_backward(const Case& c) {
  Inputs<T> in(c);
  const int64_t n = c.n, d = c.d, K = n + 2, tokens = c.tokens();
  const SumOffsets offsets(n, d, c.dynamic);
  std::vector<Expected> streams, sums(static_cast<size_t>(offsets.all), Expected{0, 0});
  std::vector<float> kept;
  const auto add = [&](int64_t i, double value, double magnitude) {
    sums[static_cast<size_t>(i)].value += value;
    sums[static_cast<size_t>(i)].magnitude += magnitude;
  };
  for (int64_t token = 0; token < tokens; ++token) {
    const Token t = in.formulas(token);
    for (int64_t i = 0; i < n; ++i) {
      Numbers g(K), m_g(K);  // of the logits
      for (int64_t m = 0; m < K; ++m) {
        double to_coefficient = 0, magnitude = 0;
        for (int64_t k = 0; k < d && m <= n; ++k) {
          to_coefficient += in.h(token, i, k) * in.grad(token, m, k);
          magnitude += std::fabs(in.h(token, i, k) * in.grad(token, m, k));
        }
        if (m > n) to_coefficient = in.grad_beta[token * n + i], magnitude = std::fabs(to_coefficient);
        add(m > n ? offsets.beta + i : offsets.alpha + i * (n + 1) + m, to_coefficient, magnitude);
        kept.push_back(static_cast<float>(t.z[i * K + m]));
        if (!c.dynamic) continue;
        const double f = t.f[i * K + m], m_z = t.m_z[i * K + m], scale = in.scales[m > n ? 1 : 0];
        g[m] = scale * to_coefficient * (c.use_tanh ? 1 - f * f : 1);
        m_g[m] = std::fabs(scale) * magnitude * (1 + 2 * m_z);
        add(offsets.logits + m, g[m], m_g[m]);
        add(offsets.scales + (m > n ? 1 : 0), to_coefficient * f, magnitude * (1 + m_z));
        for (int64_t k = 0; k < d; ++k) add(m * d + k, g[m] * t.x[i * d + k], m_g[m] * t.m_x[i * d + k]);
      }
      kept.push_back(static_cast<float>(t.inverse[i]));
      kept.push_back(static_cast<float>(t.mean[i]));
      // d h = A grad + r (u - mean(u) - x mean(u x)), u = sum_m g_m q_m, mean(u) with LayerNorm alone
      Numbers u(d), m_u(d);
      double mean = 0, m_mean = 0, along = 0, m_along = 0;
      for (int64_t k = 0; k < d; ++k) {
        for (int64_t m = 0; m < K; ++m) {
          u[k] += g[m] * in.projections[m * d + k];
          m_u[k] += m_g[m] * std::fabs(in.projections[m * d + k]);
        }
        mean += u[k] / static_cast<double>(d);
        m_mean += m_u[k] / static_cast<double>(d);
        along += u[k] * t.x[i * d + k] / static_cast<double>(d);
        m_along += m_u[k] * t.m_x[i * d + k] / static_cast<double>(d);
      }
      if (!c.layer_norm) mean = 0;
      for (int64_t k = 0; k < d; ++k) {
        const double r = t.inverse[i];
        Expected e{r * (u[k] - mean - t.x[i * d + k] * along), r * (m_u[k] + m_mean + t.m_x[i * d + k] * m_along)};
        for (int64_t m = 0; m <= n; ++m) {
          e.value += t.coefficient[i * K + m] * in.grad(token, m, k);
          e.magnitude += t.m_coefficient[i * K + m] * std::fabs(in.grad(token, m, k));
        }
        streams.push_back(e);
      }
    }
  }
  Buffer<float> kept_buffer(kept, "kept"), out_sums(sums.size(), "sums"),
      partials(static_cast<size_t>(read_backward_chunks(tokens)) * sums.size(), "partials");
  Buffer<T> out_streams(streams.size(), "grad_streams");
  const cudaError_t error = launch_read_backward({in.launch(),
                                                  {in.grad_input.device.data(), {c.T * d, d, 0}},
                                                  {in.grad_mixed.device.data(), {c.T * n * d, n * d, d}},
                                                  in.grad_beta.device.data(),
                                                  c.dynamic ? kept_buffer.data() : nullptr,
                                                  out_streams.data(),
                                                  out_sums.data(),
                                                  partials.data()},
                                                 nullptr);
  CHECK(error == cudaSuccess, c.text());
  CHECK_CLOSE(c.text() + "grad_streams", out_streams.data(), streams, c.ulps());
  CHECK_CLOSE(c.text() + "sums", out_sums.data(), sums, c.sum_ulps());
}

template <typename T>
void check_write(const Case& c) {
  const int64_t n = c.n, d = c.d, tokens = c.tokens(), row = d + c.gap;
  Values<T> mixed("mixed", tokens * n * row, 11, 1, c.shift), out("out", tokens * d, 12);
  Values<float> beta("beta", tokens * n, 13);
  std::vector<Expected> result, in_place(mixed.host.size(), Expected{0, 0}), to_beta, to_out;
  for (size_t i = 0; i < in_place.size(); ++i) in_place[i] = {mixed[static_cast<int64_t>(i)], 0};
  for (int64_t token = 0; token < tokens; ++token) {
    std::vector<Expected> sum(static_cast<size_t>(d), Expected{0, 0});
    for (int64_t i = 0; i < n; ++i) {
      Expected dot{0, 0};
      for (int64_t k = 0; k < d; ++k) {
        const double b = beta[token * n + i], y = out[token * d + k], x = mixed[(token * n + i) * row + k];
        const Expected e{x + b * y, std::fabs(x) + std::fabs(b * y)};
        result.push_back(e);
        in_place[static_cast<size_t>((token * n + i) * row + k)] = e;
        // The backward takes mixed's numbers for the gradient.
        dot.value += x * y, dot.magnitude += std::fabs(x * y);
        sum[static_cast<size_t>(k)].value += b * x, sum[static_cast<size_t>(k)].magnitude += std::fabs(b * x);
      }
      to_beta.push_back(dot);
    }
    to_out.insert(to_out.end(), sum.begin(), sum.end());
  }
  const Strides strides{c.T * n * row, n * row, row}, packed{c.T * n * d, n * d, d}, rows{c.T * d, d, 0};
  Buffer<float> grad_beta(to_beta.size(), "grad_beta");
  Buffer<T> grad_out(to_out.size(), "grad_out"), fresh(result.size(), "result");
  const StreamRows streams{mixed.device.data(), strides}, outs{out.device.data(), rows};
  CHECK(launch_write_backward(
            {c.sizes(), dtype_of<T>(), streams, outs, beta.device.data(), grad_beta.data(), grad_out.data()},
            nullptr) == cudaSuccess,
        c.text());
  CHECK_CLOSE(c.text() + "grad_beta", grad_beta.data(), to_beta, c.ulps());
  CHECK_CLOSE(c.text() + "grad_out", grad_out.data(), to_out, c.ulps());
  HyperConnectionWriteLaunch w{c.sizes(), dtype_of<T>(), fresh.data(), packed, streams, outs, beta.device.data()};
  CHECK(launch_write(w, nullptr) == cudaSuccess, c.text());
  CHECK_CLOSE(c.text() + "write", fresh.data(), result, c.ulps());
  w.result = mixed.device.data(), w.result_strides = strides;
  CHECK(launch_write(w, nullptr) == cudaSuccess, c.text());
  CHECK_CLOSE(c.text() + "write in place", mixed.device.data(), in_place, c.ulps());
}

template <typename T, typename Check>
void check_sizes(const Check& check) {
  for (const Case& size :
       {Case{1, 1, 1, 1}, Case{1, 2, 1, 40}, Case{2, 2, 2, 21}, Case{1, 3, 3, 8}, Case{2, 2, 4, 64}, Case{1, 2, 4, 300},
        Case{1, 1, 4, 2056}, Case{1, 2, 5, 24}, Case{1, 2, 8, 33}, Case{0, 2, 4, 8}}) {
    for (int form = 0; form < 4; ++form) {
      Case c = size;
      c.dynamic = form < 3, c.layer_norm = form == 1, c.use_tanh = form != 2;
      c.shift = form == 2 ? 1 : 0, c.gap = form == 1 ? 8 : form == 3 ? 3 : 0;
      check(c);
    }
  }
}

}  // namespace

CUDA_HOST_TEST(read_float32) { check_sizes<float>(check_read<float>); }
CUDA_HOST_TEST(read_bfloat16) { check_sizes<__nv_bfloat16>(check_read<__nv_bfloat16>); }
CUDA_HOST_TEST(read_float16) { check_sizes<__half>(check_read<__half>); }
CUDA_HOST_TEST(read_backward_float32) { check_sizes<float>(check_read_backward<float>); }
CUDA_HOST_TEST(read_backward_bfloat16) { check_sizes<__nv_bfloat16>(check_read_backward<__nv_bfloat16>); }
CUDA_HOST_TEST(read_backward_float16) { check_sizes<__half>(check_read_backward<__half>); }
CUDA_HOST_TEST(read_backward_several_tokens_a_chunk) { check_read_backward<float>({1, 1100, 2, 5}); }
CUDA_HOST_TEST(write_float32) { check_sizes<float>(check_write<float>); }
CUDA_HOST_TEST(write_bfloat16) { check_sizes<__nv_bfloat16>(check_write<__nv_bfloat16>); }
CUDA_HOST_TEST(write_float16) { check_sizes<__half>(check_write<__half>); }

CUDA_HOST_TEST_ONCE(float64_is_refused) {
  HyperConnectionWriteLaunch w{};
  w.sizes = {1, 1, 1, 1}, w.dtype = DType::kFloat64;
  CHECK(launch_write(w, nullptr) == cudaErrorInvalidValue, "");
}

}  // namespace satformer::ops::cuda
