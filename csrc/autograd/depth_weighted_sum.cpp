// Autograd: saves references to the sources, the weights and the norms (not the base, no sums); the backward is the
// operator depth_weighted_sum_backward, which is not differentiable itself.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/depth_weighted_sum_checks.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

DepthSumGradients call_depth_weighted_sum_backward(at::TensorList grads, const DepthSum& sum, DepthSumMask mask) {
  static const Operator<decltype(call_depth_weighted_sum_backward)> op("satformer::depth_weighted_sum_backward");
  return op(grads, sum, mask);
}

DepthSumGradients call_depth_weighted_sum_backward_add(at::TensorList grad_sources, at::TensorList grads,
                                                       const DepthSum& sum, DepthSumMask mask) {
  static const Operator<decltype(call_depth_weighted_sum_backward_add)> op("satformer::depth_weighted_sum_backward_");
  return op(grad_sources, grads, sum, mask);
}

struct DepthWeightedSum : torch::autograd::Function<DepthWeightedSum> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const DepthSum& sum, at::TensorList /*tensors*/) {
    const at::AutoDispatchBelowADInplaceOrView below;
    std::vector<at::Tensor> sums = depth_weighted_sum(sum);  // checks the arguments first
    DepthSum kept = sum;
    // The base takes no part in the others' gradients; any tensor of its shape says that it is there.
    if (given(sum.base)) kept.base = sum.sources[0];
    save_fields(context, sum, kept);
    return sums;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto sum = saved_fields<DepthSum>(context);
    const DepthSumMask mask =
        wanted(context, &DepthSum::sources, &DepthSum::weights, &DepthSum::base, &DepthSum::source_norm_weights,
               &DepthSum::source_inverse_rms, &DepthSum::output_norm_weights);
    DepthSumGradients out = call_depth_weighted_sum_backward(grads, sum, mask);
    return gradients_for(context, DepthSum{std::move(out.sources), std::move(out.weights), std::move(out.base),
                                           std::move(out.source_norm_weights), std::move(out.source_inverse_rms),
                                           std::move(out.output_norm_weights)});
  }
};

struct InverseRms : torch::autograd::Function<InverseRms> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double eps) {
    const at::AutoDispatchBelowADInplaceOrView below;
    at::Tensor inverse = inverse_rms(x, eps);
    context->save_for_backward({x, inverse});
    return inverse;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    return {inverse_rms_backward(grads[0], saved[0], saved[1]), {}};
  }
};

std::vector<at::Tensor> depth_weighted_sum_autograd(const DepthSum& sum) {
  const std::vector<at::Tensor> tensors = tensors_of(sum);
  return DepthWeightedSum::apply(sum, at::TensorList(tensors));
}

at::Tensor inverse_rms_autograd(const at::Tensor& x, double eps) { return InverseRms::apply(x, eps); }

void check_not_differentiated(const char* op, std::initializer_list<at::TensorList> lists) {
  if (!at::GradMode::is_enabled()) return;
  for (const at::TensorList list : lists) {
    for (const at::Tensor& x : list) {
      TORCH_CHECK_NOT_IMPLEMENTED(!x.defined() || !x.requires_grad(), op,
                                  ": has no derivative of its own; for second derivatives use the composite reference");
    }
  }
}

// The base is not read, so that it does not matter.
std::vector<at::Tensor> read_by_backward(const DepthSum& sum) {
  DepthSum read = sum;
  read.base.reset();
  return tensors_of(read);
}

DepthSumGradients depth_weighted_sum_backward_autograd(at::TensorList grads, const DepthSum& sum, DepthSumMask mask) {
  check_not_differentiated("depth_weighted_sum_backward", {grads, read_by_backward(sum)});
  const at::AutoDispatchBelowADInplaceOrView below;
  return call_depth_weighted_sum_backward(grads, sum, mask);
}

DepthSumGradients depth_weighted_sum_backward_add_autograd(at::TensorList grad_sources, at::TensorList grads,
                                                           const DepthSum& sum, DepthSumMask mask) {
  check_not_differentiated("depth_weighted_sum_backward_", {grad_sources, grads, read_by_backward(sum)});
  const at::AutoDispatchBelowAutograd below;
  return call_depth_weighted_sum_backward_add(grad_sources, grads, sum, mask);
}

// Also where autograd is left out (inference mode on ordinary tensors): the version counters see the write.
DepthSumGradients depth_weighted_sum_backward_add_version(at::TensorList grad_sources, at::TensorList grads,
                                                          const DepthSum& sum, DepthSumMask mask) {
  DepthSumGradients result;
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    result = call_depth_weighted_sum_backward_add(grad_sources, grads, sum, mask);
  }
  for (const at::Tensor& x : grad_sources) torch::autograd::impl::bump_version(x);
  return result;
}

at::Tensor inverse_rms_backward_autograd(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  check_not_differentiated("inverse_rms_backward", {grad, x, inverse});
  const at::AutoDispatchBelowADInplaceOrView below;
  return inverse_rms_backward(grad, x, inverse);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;
  implement<"depth_weighted_sum", &depth_weighted_sum_autograd>(library);
  implement<"depth_weighted_sum_backward", &depth_weighted_sum_backward_autograd>(library);
  implement<"depth_weighted_sum_backward_", &depth_weighted_sum_backward_add_autograd>(library);
  implement<"inverse_rms", &inverse_rms_autograd>(library);
  implement<"inverse_rms_backward", &inverse_rms_backward_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  using namespace satformer::ops;
  implement<"depth_weighted_sum_backward_", &depth_weighted_sum_backward_add_version>(library);
}
