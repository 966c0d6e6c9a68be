#include "satformer/fused/shared_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace satformer::fused {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Buffer = c10::intrusive_ptr<SharedGradient>;

// The identity. Its backward runs after those of all readers, whether or not they hand a gradient to it directly.
struct Share : torch::autograd::Function<Share> {
  // takes: whether this one hands on what is in the buffer.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Buffer& buffer, bool takes) {
    context->saved_data["buffer"] = c10::IValue::make_capsule(buffer);
    context->saved_data["takes"] = takes;
    context->saved_data["dtype"] = static_cast<std::int64_t>(x.scalar_type());
    context->set_materialize_grads(false);
    return x;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const Buffer buffer = buffer_of(*context);
    at::Tensor sum = context->saved_data["takes"].toBool() ? buffer->take() : at::Tensor();
    if (!sum.defined()) return {grads[0], {}, {}};
    if (grads[0].defined()) sum += grads[0];
    return {sum.to(static_cast<at::ScalarType>(context->saved_data["dtype"].toInt())), {}, {}};
  }

  static Buffer buffer_of(AutogradContext& context) {
    return c10::static_intrusive_pointer_cast<SharedGradient>(context.saved_data["buffer"].toCapsule());
  }
};

}  // namespace

at::Tensor& SharedGradient::sum(const at::Tensor& like, at::ScalarType dtype) {
  if (!sum_.defined()) sum_ = at::zeros(like.sizes(), like.options().dtype(dtype).requires_grad(false));
  return sum_;
}

at::Tensor SharedGradient::take() { return std::exchange(sum_, {}); }

at::Tensor fan_out(const at::Tensor& x) {
  if (!at::GradMode::is_enabled() || !x.requires_grad()) return x;
  return Share::apply(x, c10::make_intrusive<SharedGradient>(), /*takes=*/true);
}

at::Tensor fan_out_copy(const at::Tensor& copy, const at::Tensor& x) {
  const Buffer buffer = shared_gradient(x);
  return buffer && copy.requires_grad() ? Share::apply(copy, buffer, /*takes=*/false) : copy;
}

c10::intrusive_ptr<SharedGradient> shared_gradient(const at::Tensor& x) {
  if (!x.defined()) return {};
  auto* node = dynamic_cast<torch::autograd::CppNode<Share>*>(x.grad_fn().get());
  return node == nullptr ? Buffer() : Share::buffer_of(node->ctx_);
}

}  // namespace satformer::fused
