// Autograd: saves packed; the backward is the operator swiglu_backward, and its own derivative goes through the
// composite definition. Autocast: in the autocast dtype, as the product that reads y.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/swiglu.h"
#include "csrc/ops/swiglu_reference.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SwiGLU : torch::autograd::Function<SwiGLU> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& packed) {
    const at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward({packed});
    return swiglu(packed);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return {std::get<0>(swiglu_backward(grads[0], context->get_saved_variables()[0], /*with_output=*/false))};
  }
};

at::Tensor swiglu_autograd(const at::Tensor& packed) { return SwiGLU::apply(packed); }

std::tuple<at::Tensor, at::Tensor> swiglu_backward_autograd(const at::Tensor& grad, const at::Tensor& packed,
                                                            bool with_output) {
  if (at::GradMode::is_enabled() && (grad.requires_grad() || packed.requires_grad())) {
    return swiglu_backward_reference(grad, packed, with_output);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return swiglu_backward(grad, packed, with_output);
}

void swiglu_backward_in_place_autograd(at::Tensor& packed, at::Tensor& grad) {
  TORCH_CHECK(!at::GradMode::is_enabled() || (!packed.requires_grad() && !grad.requires_grad()),
              "swiglu_backward_: has no derivative; call swiglu_backward");
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    swiglu_backward_(packed, grad);
  }
  torch::autograd::impl::bump_version(packed);
  torch::autograd::impl::bump_version(grad);
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
at::Tensor swiglu_autocast(const at::Tensor& packed) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  return swiglu(at::autocast::cached_cast(at::autocast::get_autocast_dtype(kDevice), packed, kDevice));
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;

  implement<"swiglu", &swiglu_autograd>(library);
  implement<"swiglu_backward", &swiglu_backward_autograd>(library);
  implement<"swiglu_backward_", &swiglu_backward_in_place_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  using namespace satformer::ops;

  implement<"swiglu", &swiglu_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCUDA, library) {
  using namespace satformer::ops;

  implement<"swiglu", &swiglu_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>(library);
}
