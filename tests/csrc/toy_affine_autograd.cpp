// Autograd: saves no values, only which tensors were there. Autocast: x and bias in the autocast dtype.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "tests/csrc/toy_affine.h"

namespace satformer::tests::toy {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AffineFunction : torch::autograd::Function<AffineFunction> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const Affine& in, at::TensorList /*tensors*/) {
    const at::AutoDispatchBelowADInplaceOrView below;
    Affine kept;
    kept.factor = in.factor;
    ops::save_fields(context, in, kept);
    return toy_affine(in);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = ops::saved_fields<Affine>(context);
    const auto [x, bias] = ops::wanted(context, &Affine::x, &Affine::bias);
    Affine to;
    if (x) to.x = grads[0] * saved.factor;
    if (bias) to.bias = grads[0].reshape({-1, grads[0].size(-1)}).sum(0);
    return ops::gradients_for(context, to);
  }
};

at::Tensor toy_affine_autograd(const Affine& in) {
  const std::vector<at::Tensor> tensors = ops::tensors_of(in);
  return AffineFunction::apply(in, at::TensorList(tensors));
}

at::Tensor toy_affine_autocast(const Affine& in) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(at::kCPU);
  return toy_affine(
      ops::map_tensors(in, [&](const at::Tensor& x) { return at::autocast::cached_cast(dtype, x, at::kCPU); }));
}

}  // namespace
}  // namespace satformer::tests::toy

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  satformer::ops::implement<"toy_affine", &satformer::tests::toy::toy_affine_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  satformer::ops::implement<"toy_affine", &satformer::tests::toy::toy_affine_autocast>(library);
}
