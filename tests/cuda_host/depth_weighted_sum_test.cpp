// depth_weighted_sum's CUDA kernels and launchers against the formulas of csrc/ops/depth_weighted_sum.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/depth_weighted_sum.cu"
#include "tests/cuda_host/depth_weighted_sum_cases.h"

namespace satformer::ops::cuda {

CUDA_HOST_DYNAMIC_SHARED(float, memory);

namespace {

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
  std::vector<Buffer<T>> buffers;
  DepthSumOutputsLaunch out{};
  for (int i = 0; i < c.C; ++i) {
    buffers.emplace_back(expected[i].size(), "out");
    out.out[i] = buffers[i].data();
  }
  CHECK(launch_depth_sum(in.launch(), out, nullptr) == cudaSuccess, c.text());
  for (int i = 0; i < c.C; ++i) CHECK_CLOSE(c.text() + "out", buffers[i].data(), expected[i], c.ulps());
}

template <typename T>
void check_backward(const Case& c, bool adds) {
  Inputs<T> in(c);
  Gradients expected = gradients_of(in);
  DepthSumBackwardLaunch out{};
  out.writes_sources = true, out.add_to_sources = adds;
  for (int i = 0; i < c.C; ++i) out.grads[i] = {in.grads[i].data(), c.T * c.d, c.d};
  std::vector<Buffer<T>> fresh;
  std::vector<std::vector<Expected>> in_place;
  for (int j = 0; j < c.S; ++j) {
    fresh.emplace_back(expected.sources[j].size(), "grad_source");
    out.sources[j] =
        adds ? WriteRows{in.before[j].data(), c.T * in.row, in.row} : WriteRows{fresh[j].data(), c.T * c.d, c.d};
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
      CHECK_CLOSE(c.text() + "sources", fresh[j].data(), expected.sources[j], c.ulps());
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
      Numbers<T> x("x", rows * stride, 1);
      Numbers<float> grad("grad", rows, 2);
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
