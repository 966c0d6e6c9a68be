// linear_cross_entropy's CUDA kernel and launcher for a chunk's logits against its formulas in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/linear_cross_entropy.cu"
#include "tests/cuda_host/row_matrix.h"

namespace satformer::ops::cuda {
namespace {

using cuda_host::Buffer;
using cuda_host::Expected;

constexpr int64_t kIgnored = -100;

template <typename T>
double log_sum_of_exponentials(const RowMatrix<T>& logits, int64_t row, int64_t V) {
  double sum = 0;
  for (int64_t j = 0; j < V; ++j) sum += std::exp(logits(row, j));
  return std::log(sum);
}

template <typename T>
void check_rows(const std::vector<int64_t>& targets, int64_t V, RowLayout layout, double scale) {
  const auto rows = static_cast<int64_t>(targets.size());
  const std::string where = text_of(rows, "V", V, layout);
  const double ulps = 16 + static_cast<double>(V);  // exp, and a sum over V
  RowMatrix<T> logits("logits", rows, V, layout, 1), read_only("logits", rows, V, layout, 1);
  Buffer<int64_t> device_targets(targets, "targets");
  Buffer<float> losses(targets.size(), "losses"), same_losses(targets.size(), "losses");
  LogitArguments a{rows, V, logits.output(), device_targets, losses, kIgnored, static_cast<float>(scale), true};
  CHECK(launch_logit_rows(a, nullptr) == cudaSuccess, where);
  std::vector<Expected> expected_losses;
  std::vector<double> log_sums;
  for (int64_t i = 0; i < rows; ++i) {
    log_sums.push_back(log_sum_of_exponentials(logits, i, V));
    const int64_t target = targets[static_cast<size_t>(i)];
    if (target == kIgnored) {
      expected_losses.push_back({0, 0});
    } else if (target < 0 || target >= V) {
      expected_losses.push_back({NAN, 0});
    } else {
      const double log_sum = log_sums.back(), x = logits(i, target);
      expected_losses.push_back({scale * (log_sum - x), scale * (1 + std::fabs(log_sum) + std::fabs(x))});
    }
  }
  CHECK_CLOSE(where + "losses", losses.data(), expected_losses, ulps);
  const auto gradient_of = [&](int64_t i, int64_t j) {
    const int64_t target = targets[static_cast<size_t>(i)];
    if (target == kIgnored) return Expected{0, 0};
    if (target < 0 || target >= V) return Expected{NAN, 0};
    const double p = std::exp(logits(i, j) - log_sums[static_cast<size_t>(i)]), hit = j == target ? 1 : 0;
    return Expected{scale * (p - hit), scale * (p * (1 + std::fabs(logits(i, j))) + hit)};
  };
  CHECK_CLOSE(where + "gradients", logits.data(), logits.expect(gradient_of), ulps);

  LogitArguments b = a;
  b.logits = read_only.output();
  b.losses = same_losses;
  b.with_gradients = false;
  CHECK(launch_logit_rows(b, nullptr) == cudaSuccess, where);
  CHECK_CLOSE(where + "losses alone", same_losses.data(), expected_losses, ulps);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < V; ++j) CHECK(read_only.now(i, j) == read_only(i, j), where + "logits were overwritten");
  }
}

}  // namespace

CUDA_HOST_TEST(losses_and_gradients_of_every_size_and_layout) {
  for (const RowLayout layout : kRowLayouts) {
    for (const int64_t V : {1, 2, 7, 8, 31, 257, 5000}) {
      const std::vector<int64_t> targets{0, V - 1, kIgnored, V / 2};
      check_rows<float>(targets, V, layout, 1);
      check_rows<__nv_bfloat16>(targets, V, layout, 0.25);
    }
    check_rows<__half>({3, 17, kIgnored}, 40, layout, 1);
  }
  check_rows<float>({}, 8, RowLayout::kDense, 1);
}

CUDA_HOST_TEST(targets_out_of_range_are_not_read_and_make_nan) {
  check_rows<float>({5, 40, -1, int64_t{1} << 40, kIgnored}, 40, RowLayout::kDense, 1);
}

CUDA_HOST_TEST(large_logits_do_not_overflow) {
  const int64_t V = 3;
  Buffer<float> logits(std::vector<float>{5000.f, 5000.f, 4000.f, -INFINITY, -5000.f, -5000.f, NAN, 0.f, 0.f},
                       "logits");
  Buffer<int64_t> targets(std::vector<int64_t>{0, 1, 1}, "targets");
  Buffer<float> losses(3, "losses");
  CHECK(
      launch_logit_rows({3, V, matrix<void*>(logits.data(), DType::kFloat32, V), targets, losses, kIgnored, 1.f, true},
                        nullptr) == cudaSuccess,
      "launch");
  const double log2 = std::log(2.);
  CHECK_CLOSE("losses", losses.data(), {{log2, 1}, {log2, 1}, {NAN, 0}}, 4);
  CHECK_CLOSE("gradients", logits.data(),
              {{-0.5, 1}, {0.5, 1}, {0, 0}, {0, 0}, {-0.5, 1}, {0.5, 1}, {NAN, 0}, {NAN, 0}, {NAN, 0}}, 4);
}

}  // namespace satformer::ops::cuda
