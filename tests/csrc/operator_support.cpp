#include "tests/csrc/operator_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

namespace satformer::tests {

at::Tensor normal(const std::vector<std::int64_t>& sizes, at::ScalarType dtype, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed)).to(dtype);
}

at::Tensor with_layout(const at::Tensor& x, RowLayout layout) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  at::Tensor out;
  if (layout == RowLayout::kSlice) {
    sizes.back() += 3;
    out = at::zeros(sizes, x.options()).slice(-1, 2, x.size(-1) + 2);
  } else if (layout == RowLayout::kTransposed && x.dim() > 2) {
    std::swap(sizes[0], sizes[1]);
    out = at::zeros(sizes, x.options()).transpose(0, 1);
  } else if (layout == RowLayout::kColumns && x.dim() > 1) {
    std::swap(sizes.front(), sizes.back());
    out = at::zeros(sizes, x.options()).transpose(0, -1);
  } else {
    out = at::zeros(sizes, x.options());
  }
  return out.copy_(x);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

std::string schema_of(const std::string& name) {
  return c10::toString(c10::Dispatcher::singleton().findSchemaOrThrow(("satformer::" + name).c_str(), "").schema());
}

bool has_kernels(const std::string& name, std::initializer_list<c10::DispatchKey> keys) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("satformer::" + name).c_str(), "");
  for (const c10::DispatchKey key : keys) {
    if (!op.hasKernelForDispatchKey(key)) return false;
  }
  return true;
}

at::Tensor central_differences(const std::function<at::Tensor()>& value, const at::Tensor& x) {
  constexpr double kStep = 1e-5;
  const at::NoGradGuard no_grad;
  at::Tensor result = at::zeros(x.sizes(), at::kDouble);
  double* data = x.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto value_at = [&](double element) {
      data[i] = element;
      return value().item<double>();
    };
    const double centre = data[i], above = value_at(centre + kStep), below = value_at(centre - kStep);
    data[i] = centre;
    result.mutable_data_ptr<double>()[i] = (above - below) / (2 * kStep);
  }
  return result;
}

CPUAutocast::CPUAutocast() {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
}

CPUAutocast::~CPUAutocast() {
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
}

std::vector<std::vector<at::Tensor>> with_threads(const std::function<std::vector<at::Tensor>()>& call) {
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    results.push_back(call());
  }
  at::set_num_threads(before);
  return results;
}

}  // namespace satformer::tests
