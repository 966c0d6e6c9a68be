// adamw_'s CUDA kernel and launcher against the formula of csrc/ops/adamw.h in float64.
#include "tests/cuda_host/testing.h"

#include <memory>

#include "csrc/cuda/adamw.cu"
#include "tests/cuda_host/flat_buffers.h"

namespace satformer::ops::cuda {
namespace {

using cuda_host::Expected;

constexpr double kUlps = 16;  // a few roundings each, the root and the quotient among them
constexpr double kLr = 0.03, kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8, kDecay = 1 - kLr * 0.1, kFactor = 0.37;

// Normal numbers, or their squares.
template <typename T>
std::vector<T> numbers(size_t n, unsigned seed, bool squares = false) {
  std::vector<T> x = cuda_host::normal<T>(n, seed);
  for (T& value : x) {
    const double number = cuda_host::as_double(value);
    if (squares) value = cuda_host::from_double<T>(number * number);
  }
  return x;
}

class AnyParameter {
 public:
  virtual ~AnyParameter() = default;
  virtual AdamWItem item() = 0;
  virtual void check(const std::string& where) const = 0;
};

// Types of the parameter, the gradient, exp_avg and exp_avg_sq.
template <typename P, typename G, typename M, typename V>
class Parameter : public AnyParameter {
 public:
  Parameter(size_t n, unsigned seed, size_t shift)
      : n_(n),
        step_size_(kLr / (1 - std::pow(kBeta1, seed % 5 + 1.0))),
        inverse_root_(1 / std::sqrt(1 - std::pow(kBeta2, seed % 5 + 1.0))),
        p_("parameter", numbers<P>(n, seed), shift),
        g_("gradient", numbers<G>(n, seed + 1), shift > 0 ? shift - 1 : 0),
        m_("exp_avg", numbers<M>(n, seed + 2), shift),
        v_("exp_avg_sq", numbers<V>(n, seed + 3, /*squares=*/true), shift) {}

  AdamWItem item() override {
    return {p_.output(), m_.output(), v_.output(), g_.input(), static_cast<int64_t>(n_), step_size_, inverse_root_};
  }

  void check(const std::string& where) const override {
    std::vector<Expected> p, m, v;
    for (size_t i = 0; i < n_; ++i) {
      // float64 parameters: ulps of their own arithmetic.
      const double unit = std::is_same_v<P, double> ? 0x1p-29 : 1;
      const double g = g_[i] * kFactor, mean = kBeta1 * m_[i] + (1 - kBeta1) * g,
                   square = kBeta2 * v_[i] + (1 - kBeta2) * g * g;
      const double mean_size = kBeta1 * std::fabs(m_[i]) + (1 - kBeta1) * std::fabs(g);
      const double scale = step_size_ / (std::sqrt(square) * inverse_root_ + kEps);
      m.push_back({mean, unit * mean_size});
      v.push_back({square, unit * square});
      p.push_back({kDecay * p_[i] - scale * mean, unit * (std::fabs(p_[i]) + scale * mean_size)});
    }
    CHECK_CLOSE(where + "parameter", p_.data(), p, kUlps);
    CHECK_CLOSE(where + "exp_avg", m_.data(), m, kUlps);
    CHECK_CLOSE(where + "exp_avg_sq", v_.data(), v, kUlps);
    CHECK(g_.is_unchanged(), where + "gradient");
  }

 private:
  size_t n_;
  double step_size_, inverse_root_;
  FlatBuffer<P> p_;
  FlatBuffer<G> g_;
  FlatBuffer<M> m_;
  FlatBuffer<V> v_;
};

using Parameters = std::vector<std::unique_ptr<AnyParameter>>;

template <typename P, typename G, typename M, typename V>
void add(Parameters& parameters, size_t n, size_t shift = 0) {
  const auto seed = static_cast<unsigned>(10 * parameters.size() + 1);
  parameters.push_back(std::make_unique<Parameter<P, G, M, V>>(n, seed, shift));
}

template <typename F>
void check_update(const Parameters& parameters, const std::string& where) {
  const FlatBuffer<F> factor("gradient_factor", {static_cast<F>(kFactor)}, 0);
  std::vector<AdamWItem> items;
  for (const auto& parameter : parameters) items.push_back(parameter->item());
  const AdamWCoefficients coefficients{factor.input(), kBeta1, kBeta2, kEps, kDecay};
  CHECK(launch_adamw(items.data(), static_cast<int64_t>(items.size()), coefficients, nullptr) == cudaSuccess, where);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i]->check(where + std::to_string(i) + " ");
}

}  // namespace

CUDA_HOST_TEST(adamw_of_every_size_and_alignment) {
  for (const size_t shift : {0, 1, 3}) {
    Parameters parameters;
    for (const size_t n : {0, 1, 7, 8, 9, 64, 250, 2047, 2048, 2049, 8192, 8199, 20000}) {
      add<float, float, float, float>(parameters, n, shift);
    }
    check_update<float>(parameters, "shift " + std::to_string(shift) + " tensor ");
  }
}

CUDA_HOST_TEST(adamw_of_every_mixture_of_dtypes) {
  using bf16 = __nv_bfloat16;
  for (const size_t shift : {0, 1}) {
    for (const size_t n : {16, 77}) {
      Parameters parameters;
      add<float, bf16, float, float>(parameters, n, shift);
      add<float, double, float, float>(parameters, n, shift);
      add<bf16, bf16, bf16, bf16>(parameters, n, shift);
      add<double, double, double, double>(parameters, n, shift);
      add<bf16, bf16, float, float>(parameters, n, shift);
      add<bf16, float, bf16, float>(parameters, n, shift);
      add<double, __half, double, double>(parameters, n, shift);
      add<__half, __half, __half, __half>(parameters, n, shift);
      add<__half, bf16, float, __half>(parameters, n, shift);
      check_update<double>(parameters, "n " + std::to_string(n) + " tensor ");
    }
  }
}

CUDA_HOST_TEST(adamw_of_more_parameters_than_a_launch_takes) {
  Parameters parameters;
  for (size_t i = 0; i < 2 * kMostUpdated + 3; ++i) {
    i % 3 == 0 ? add<double, double, double, double>(parameters, i) : add<float, float, float, float>(parameters, i);
  }
  check_update<double>(parameters, "tensor ");
  Parameters exactly;
  for (size_t i = 0; i < kMostUpdated; ++i) add<float, float, float, float>(exactly, 5);
  check_update<double>(exactly, "exactly ");
  check_update<double>({}, "none ");
}

CUDA_HOST_TEST_ONCE(adamw_reads_the_factor_on_the_device) {
  Parameters parameters;
  add<float, float, float, float>(parameters, 3);
  const AdamWItem item = parameters[0]->item();
  const double nan = std::nan("");
  const FlatBuffer<double> factor("gradient_factor", {nan}, 0);
  CHECK(launch_adamw(&item, 1, {factor.input(), kBeta1, kBeta2, kEps, kDecay}, nullptr) == cudaSuccess, "launch");
  for (int i = 0; i < 3; ++i) CHECK(std::isnan(static_cast<const float*>(item.parameter.data)[i]), "NaN comes through");
}

}  // namespace satformer::ops::cuda
