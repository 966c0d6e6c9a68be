// CPU: check, allocate, compute. (A kernel worth its name is compiled for each CPU capability: csrc/cpu/*_kernel.cpp.)
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "tests/csrc/toy_affine_checks.h"

namespace satformer::tests::toy {
namespace {

template <typename scalar_t>
void affine(const at::Tensor& y, const at::Tensor& x, const at::Tensor& bias, double factor) {
  using acc_t = at::opmath_type<scalar_t>;
  const std::int64_t n = x.size(-1);
  const auto* from = x.const_data_ptr<scalar_t>();
  const auto* shift = bias.defined() ? bias.const_data_ptr<scalar_t>() : nullptr;
  auto* to = y.mutable_data_ptr<scalar_t>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const acc_t added = shift != nullptr ? static_cast<acc_t>(shift[i % n]) : acc_t(0);
    to[i] = static_cast<scalar_t>(static_cast<acc_t>(factor) * static_cast<acc_t>(from[i]) + added);
  }
}

at::Tensor toy_affine_cpu(const Affine& in) {
  at::Tensor y = outputs_of_toy_affine(in);
  const at::Tensor x = in.x.contiguous(), bias = in.bias ? in.bias->contiguous() : at::Tensor();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "toy_affine",
                                  [&] { affine<scalar_t>(y, x, bias, in.factor); });
  return y;
}

}  // namespace
}  // namespace satformer::tests::toy

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  satformer::ops::implement<"toy_affine", &satformer::tests::toy::toy_affine_cpu>(library);
}
