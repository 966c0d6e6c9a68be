// qk_norm_rope_mix' CUDA kernels and launchers against the formulas of csrc/ops/qk_norm_rope_mix.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/qk_norm_rope_mix.cu"
#include "tests/cuda_host/qk_norm_rope_mix_formulas.h"

namespace satformer::ops::cuda {
namespace {

// What a call takes of the inputs, and where it puts q', k', v' or a packed gradient.
template <typename In, typename T>
MixInputsArguments forward_arguments(In& in, Buffer<T>& q, Buffer<T>& k, Buffer<T>& v) {
  const View q_view = contiguous(in.c.q_sizes()), kv_view = contiguous(in.c.kv_sizes());
  return {in.pass(),
          source(in.projection, in.views.q),
          source(in.projection, in.views.k),
          source(in.projection, in.views.v),
          target(q, q_view),
          target(k, kv_view),
          target(v, kv_view)};
}

template <typename In, typename T>
MixInputsBackwardArguments backward_arguments(In& in, Buffer<T>& packed) {
  MixInputsBackwardArguments a{};
  a.pass = in.pass();
  a.q = source(in.projection, in.views.q), a.k = source(in.projection, in.views.k);
  a.v = source(in.projection, in.views.v);
  a.grad_q = source(in.grad_q, in.grad_q_view), a.grad_k = source(in.grad_k, in.grad_kv_view);
  a.grad_v = source(in.grad_v, in.grad_kv_view);
  a.to_q = target(packed, in.views.q), a.to_k = target(packed, in.views.k), a.to_v = target(packed, in.views.v);
  return a;
}

// --- forward ---------------------------------------------------------------------------------------------------
template <typename T, typename L>
void check_forward(const Case& c) {
  Inputs<T, L> in(c);
  const View q_view = contiguous(c.q_sizes()), kv_view = contiguous(c.kv_sizes());
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
  for_each_row(c.q_sizes(), head(in.views.q, in.q_weight, q_view, q_expected));
  for_each_row(c.kv_sizes(), head(in.views.k, in.k_weight, kv_view, k_expected));
  for_each_row(c.kv_sizes(), [&](int64_t b, int64_t t, int64_t h) {
    const auto [first, own] = in.factors(in.gates(b, t), h);
    for (int64_t i = 0; i < c.hd; ++i) {
      const double x = own * in.projection[in.views.v.at(b, t, h, i)],
                   y = first * in.first[in.first_view.at(b, t, h, i)];
      v_expected[kv_view.at(b, t, h, i)] = {x + y, std::fabs(x) + std::fabs(y)};
    }
  });
  const MixInputsArguments a = forward_arguments(in, q, k, v);
  CHECK(launch_qk_norm_rope_mix(a, nullptr) == cudaSuccess, c.text());
  const double ulps = kUlps + static_cast<double>(c.hd);  // one rounding for each term of the sum of squares
  CHECK_CLOSE(c.text() + "q'", q.data(), q_expected, ulps);
  CHECK_CLOSE(c.text() + "k'", k.data(), k_expected, ulps);
  CHECK_CLOSE(c.text() + "v'", v.data(), v_expected, kUlps);
}

// --- backward --------------------------------------------------------------------------------------------------
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

  const View kv_view = contiguous(c.kv_sizes());
  Buffer<T> packed(in.projection.host.size(), "packed gradient", c.shift);
  Buffer<L> logits(in.logits.host.size(), "logits gradient");
  Numbers<F> first("first values' gradient", c.tokens() * c.H_kv * c.hd, 13, c.shift);
  for (size_t i = 0; adds && i < expected.first.size(); ++i) expected.first[i].add(first[i]);
  MixInputsBackwardArguments a = backward_arguments(in, packed);
  const int64_t blocks = backward_blocks(a.pass);
  Buffer<float> q_sums(static_cast<size_t>(blocks * c.hd), "q_sums"),
      k_sums(static_cast<size_t>(blocks * c.hd), "k_sums");
  Buffer<float> lambda_sums(static_cast<size_t>(blocks * 2), "lambda_sums");
  Buffer<float> dots(static_cast<size_t>(c.tokens() * c.H_kv), "dots");
  Buffer<float> q_weight(expected.q_weight.size(), "q_weight's gradient");
  Buffer<float> k_weight(expected.k_weight.size(), "k_weight's gradient"), lambdas(2, "lambdas' gradient");
  if (c.mix == ValueMix::kSelective) a.to_logits = {logits.data(), in.logit_strides()};
  if (is_over_heads(c.gate)) a.dots = dots.data();
  if (c.mix != ValueMix::kNone) a.to_first_values = target(first.device, kv_view);
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
  if (c.mix != ValueMix::kNone) CHECK_CLOSE(c.text() + "first values", first.data(), expected.first, kUlps);
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
  const View kv_view = contiguous(c.kv_sizes());
  const size_t size = static_cast<size_t>(c.tokens() * c.H_kv * c.hd);
  Buffer<T> q(size, "q'"), k(size, "k'"), v(size, "v'");
  MixInputsArguments forward = forward_arguments(in, q, k, v);
  forward.pass.first_values.data = nullptr;
  CHECK(launch_qk_norm_rope_mix(forward, nullptr) == cudaSuccess, c.text());
  for_each_row(c.kv_sizes(), [&](int64_t b, int64_t t, int64_t h) {
    for (int64_t i = 0; i < hd; ++i) {
      const double expected = in.projection[in.views.v.at(b, t, h, i)];
      CHECK(as_double(v[kv_view.at(b, t, h, i)]) == expected, "v must come out as it is");
    }
  });
  Buffer<T> packed(in.projection.host.size(), "packed gradient"), first(size, "first values' gradient");
  Buffer<float> logits(in.logits.host.size(), "logits gradient");
  MixInputsBackwardArguments a = backward_arguments(in, packed);
  a.pass.first_values.data = nullptr, a.v.data = nullptr;
  if (mix == ValueMix::kSelective) a.to_logits = {logits.data(), in.logit_strides()};
  a.to_first_values = target(first, kv_view);
  a.first_values_dtype = a.pass.dtype;
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
  MixInputsBackwardArguments a = backward_arguments(in, packed);
  Buffer<float> lambda_sums(static_cast<size_t>(backward_blocks(a.pass) * 2), "lambda_sums");
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
