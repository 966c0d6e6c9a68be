// The hyper-connections' CUDA kernels and launchers against the formulas of csrc/ops/hyper_connection.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/hyper_connection.cu"
#include "tests/cuda_host/hyper_connection_cases.h"

namespace satformer::ops::cuda {

CUDA_HOST_DYNAMIC_SHARED(float, memory);

namespace {

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
          e.add(t.coefficient[i * K + m] * in.h(token, i, k),
                t.m_coefficient[i * K + m] * std::fabs(in.h(token, i, k)));
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
    sums[static_cast<size_t>(i)].add(value, magnitude);
  };
  for (int64_t token = 0; token < tokens; ++token) {
    const Token t = in.formulas(token);
    for (int64_t i = 0; i < n; ++i) {
      Row g(K), m_g(K);  // of the logits
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
      Row u(d), m_u(d);
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
          const double grad = in.grad(token, m, k);
          e.add(t.coefficient[i * K + m] * grad, t.m_coefficient[i * K + m] * std::fabs(grad));
        }
        streams.push_back(e);
      }
    }
  }
  Buffer<float> kept_buffer(kept, "kept"), out_sums(sums.size(), "sums"),
      partials(static_cast<size_t>(read_backward_chunks(tokens)) * sums.size(), "partials");
  Buffer<T> out_streams(streams.size(), "grad_streams");
  const cudaError_t error = launch_read_backward({in.launch(),
                                                  {in.grad_input.data(), {c.T * d, d, 0}},
                                                  {in.grad_mixed.data(), {c.T * n * d, n * d, d}},
                                                  in.grad_beta.data(),
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
  Numbers<T> mixed("mixed", tokens * n * row, 11, c.shift), out("out", tokens * d, 12);
  Numbers<float> beta("beta", tokens * n, 13);
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
        dot.add(x * y);
        sum[static_cast<size_t>(k)].add(b * x);
      }
      to_beta.push_back(dot);
    }
    to_out.insert(to_out.end(), sum.begin(), sum.end());
  }
  const Strides strides{c.T * n * row, n * row, row}, packed{c.T * n * d, n * d, d}, rows{c.T * d, d, 0};
  Buffer<float> grad_beta(to_beta.size(), "grad_beta");
  Buffer<T> grad_out(to_out.size(), "grad_out"), fresh(result.size(), "result");
  const Source streams{mixed.data(), strides}, outs{out.data(), rows};
  CHECK(launch_write_backward({c.sizes(), dtype_of<T>(), streams, outs, beta.data(), grad_beta.data(), grad_out.data()},
                              nullptr) == cudaSuccess,
        c.text());
  CHECK_CLOSE(c.text() + "grad_beta", grad_beta.data(), to_beta, c.ulps());
  CHECK_CLOSE(c.text() + "grad_out", grad_out.data(), to_out, c.ulps());
  HyperConnectionWriteLaunch w{c.sizes(), dtype_of<T>(), fresh.data(), packed, streams, outs, beta.data()};
  CHECK(launch_write(w, nullptr) == cudaSuccess, c.text());
  CHECK_CLOSE(c.text() + "write", fresh.data(), result, c.ulps());
  w.result = mixed.data(), w.result_strides = strides;
  CHECK(launch_write(w, nullptr) == cudaSuccess, c.text());
  CHECK_CLOSE(c.text() + "write in place", mixed.data(), in_place, c.ulps());
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
