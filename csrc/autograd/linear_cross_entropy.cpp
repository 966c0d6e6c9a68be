// Autograd: the gradients are computed with the loss, where they are needed, and kept; the backward multiplies them by
// the incoming number. Autocast: the products in the autocast dtype, the loss in float32.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/linear_cross_entropy.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// False where it would take a synchronisation, or the tensor has no values, to find out.
bool is_known_to_be_one(const at::Tensor& x) {
  const bool plain = x.device().is_cpu() && !x.key_set().has(c10::DispatchKey::Python);
  return plain && x.item<double>() == 1;
}

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                            const at::Tensor& targets, int64_t ignore_index, double scale) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [loss, grad_hidden, grad_weight] = linear_cross_entropy_with_gradients(
        hidden, weight, targets, ignore_index, scale, {hidden.requires_grad(), weight.requires_grad()});
    context->save_for_backward({grad_hidden, grad_weight});
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(),
                                "linear_cross_entropy: second derivatives are not implemented");
    const variable_list saved = context->get_saved_variables();
    const bool is_one = is_known_to_be_one(grads[0]);
    const auto scaled = [&](const at::Tensor& x) { return is_one || !x.defined() ? x : at::mul(x, grads[0]); };
    return {scaled(saved[0]), scaled(saved[1]), {}, {}, {}};
  }
};

at::Tensor linear_cross_entropy_autograd(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                         int64_t ignore_index, double scale) {
  if (at::GradMode::is_enabled() && (hidden.requires_grad() || weight.requires_grad())) {
    return LinearCrossEntropy::apply(hidden, weight, targets, ignore_index, scale);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return linear_cross_entropy(hidden, weight, targets, ignore_index, scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy_with_gradients_autograd(
    const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, int64_t ignore_index, double scale,
    std::array<bool, 2> output_mask, std::optional<at::ScalarType> grad_weight_dtype) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return linear_cross_entropy_with_gradients(hidden, weight, targets, ignore_index, scale, output_mask,
                                             grad_weight_dtype);
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
at::Tensor linear_cross_entropy_autocast(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                         int64_t ignore_index, double scale) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(kDevice);
  return linear_cross_entropy(at::autocast::cached_cast(dtype, hidden, kDevice),
                              at::autocast::cached_cast(dtype, weight, kDevice), targets, ignore_index, scale);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;

  implement<"linear_cross_entropy", &linear_cross_entropy_autograd>(library);
  implement<"linear_cross_entropy_with_gradients", &linear_cross_entropy_with_gradients_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  using namespace satformer::ops;

  implement<"linear_cross_entropy",
            &linear_cross_entropy_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCUDA, library) {
  using namespace satformer::ops;

  implement<"linear_cross_entropy",
            &linear_cross_entropy_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>(library);
}
