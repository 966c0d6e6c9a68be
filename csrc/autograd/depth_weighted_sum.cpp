// Autograd: saves references to the sources, the weights and the norms (not the base, no sums); the backward is the
// operator depth_weighted_sum_backward, which is not differentiable itself.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <array>

#include "csrc/ops/depth_weighted_sum_calls.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void append(variable_list& list, at::TensorList more) { list.insert(list.end(), more.begin(), more.end()); }

// The gradients of a list of `count` arguments; none are wanted where the kernel returned none.
void append_gradients(variable_list& list, const Tensors& gradients, std::size_t count) {
  append(list, gradients);
  list.resize(list.size() + count - gradients.size());
}

struct DepthWeightedSum : torch::autograd::Function<DepthWeightedSum> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, at::TensorList sources, const at::Tensor& weights,
                               const std::optional<at::Tensor>& base, at::TensorList source_norm_weights,
                               at::TensorList source_inverse_rms, at::TensorList output_norm_weights,
                               double output_norm_eps) {
    const at::AutoDispatchBelowADInplaceOrView below;
    variable_list saved = sources.vec();
    saved.push_back(weights);
    append(saved, source_norm_weights);
    append(saved, source_inverse_rms);
    append(saved, output_norm_weights);
    context->save_for_backward(std::move(saved));
    context->saved_data["sources"] = static_cast<std::int64_t>(sources.size());
    context->saved_data["norms"] = static_cast<std::int64_t>(source_norm_weights.size());
    context->saved_data["has_base"] = given(base);
    context->saved_data["output_norm_eps"] = output_norm_eps;
    return depth_sum_operator().call(sources, weights, base, source_norm_weights, source_inverse_rms,
                                     output_norm_weights, output_norm_eps);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const at::TensorList all(saved);
    const std::size_t S = context->saved_data["sources"].toInt(), norms = context->saved_data["norms"].toInt();
    const bool has_base = context->saved_data["has_base"].toBool();
    const at::TensorList sources = all.slice(0, S), norm_weights = all.slice(S + 1, norms),
                         inverse_rms = all.slice(S + 1 + norms, norms), output_norms = all.slice(S + 1 + 2 * norms);
    // Edges count the defined tensor arguments, lists one by one.
    const std::array<std::size_t, 6> counts{S, 1, has_base ? 1U : 0U, norms, norms, output_norms.size()};
    DepthSumMask mask{};
    std::size_t edge = 0;
    for (std::size_t field = 0; field < counts.size(); ++field) {
      for (std::size_t i = 0; i < counts[field]; ++i) mask[field] = context->needs_input_grad(edge++) || mask[field];
    }
    // The base takes no part in the others' gradients; any tensor of its shape says that it is there.
    const std::optional<at::Tensor> base = has_base ? std::optional<at::Tensor>(sources[0]) : std::nullopt;
    auto [grad_sources, grad_weights, grad_base, grad_norm_weights, grad_inverse_rms, grad_output_norms] =
        depth_sum_backward_operator().call(grads, sources, saved[S], base, norm_weights, inverse_rms, output_norms,
                                           context->saved_data["output_norm_eps"].toDouble(), mask);
    variable_list result;
    append_gradients(result, grad_sources, S);
    result.push_back(grad_weights);
    result.push_back(grad_base);
    append_gradients(result, grad_norm_weights, norms);
    append_gradients(result, grad_inverse_rms, norms);
    append_gradients(result, grad_output_norms, output_norms.size());
    result.emplace_back();
    return result;
  }
};

struct InverseRms : torch::autograd::Function<InverseRms> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double eps) {
    const at::AutoDispatchBelowADInplaceOrView below;
    at::Tensor inverse = inverse_rms_operator().call(x, eps);
    context->save_for_backward({x, inverse});
    return inverse;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    return {inverse_rms_backward_operator().call(grads[0], saved[0], saved[1]), {}};
  }
};

Tensors depth_sum_autograd(at::TensorList sources, const at::Tensor& weights, const std::optional<at::Tensor>& base,
                           at::TensorList source_norm_weights, at::TensorList source_inverse_rms,
                           at::TensorList output_norm_weights, double output_norm_eps) {
  return DepthWeightedSum::apply(sources, weights, base, source_norm_weights, source_inverse_rms, output_norm_weights,
                                 output_norm_eps);
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

DepthGradientTuple depth_sum_backward_autograd(at::TensorList grads, at::TensorList sources, const at::Tensor& weights,
                                               const std::optional<at::Tensor>& base,
                                               at::TensorList source_norm_weights, at::TensorList source_inverse_rms,
                                               at::TensorList output_norm_weights, double output_norm_eps,
                                               DepthSumMask mask) {
  check_not_differentiated("depth_weighted_sum_backward",
                           {grads, sources, weights, source_norm_weights, source_inverse_rms, output_norm_weights});
  const at::AutoDispatchBelowADInplaceOrView below;
  return depth_sum_backward_operator().call(grads, sources, weights, base, source_norm_weights, source_inverse_rms,
                                            output_norm_weights, output_norm_eps, mask);
}

DepthGradientTuple depth_sum_backward_add_autograd(
    at::TensorList grad_sources, at::TensorList grads, at::TensorList sources, const at::Tensor& weights,
    const std::optional<at::Tensor>& base, at::TensorList source_norm_weights, at::TensorList source_inverse_rms,
    at::TensorList output_norm_weights, double output_norm_eps, DepthSumMask mask) {
  check_not_differentiated("depth_weighted_sum_backward_", {grad_sources, grads, sources, weights, source_norm_weights,
                                                            source_inverse_rms, output_norm_weights});
  const at::AutoDispatchBelowAutograd below;
  return depth_sum_backward_add_operator().call(grad_sources, grads, sources, weights, base, source_norm_weights,
                                                source_inverse_rms, output_norm_weights, output_norm_eps, mask);
}

// Also where autograd is left out (inference mode on ordinary tensors): the version counters see the write.
DepthGradientTuple depth_sum_backward_add_version(at::TensorList grad_sources, at::TensorList grads,
                                                  at::TensorList sources, const at::Tensor& weights,
                                                  const std::optional<at::Tensor>& base,
                                                  at::TensorList source_norm_weights, at::TensorList source_inverse_rms,
                                                  at::TensorList output_norm_weights, double output_norm_eps,
                                                  DepthSumMask mask) {
  DepthGradientTuple result;
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    result = depth_sum_backward_add_operator().call(grad_sources, grads, sources, weights, base, source_norm_weights,
                                                    source_inverse_rms, output_norm_weights, output_norm_eps, mask);
  }
  for (const at::Tensor& x : grad_sources) torch::autograd::impl::bump_version(x);
  return result;
}

at::Tensor inverse_rms_backward_autograd(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  check_not_differentiated("inverse_rms_backward", {grad, x, inverse});
  const at::AutoDispatchBelowADInplaceOrView below;
  return inverse_rms_backward_operator().call(grad, x, inverse);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  library.impl("depth_weighted_sum", &satformer::ops::depth_sum_autograd);
  library.impl("depth_weighted_sum_backward", &satformer::ops::depth_sum_backward_autograd);
  library.impl("depth_weighted_sum_backward_", &satformer::ops::depth_sum_backward_add_autograd);
  library.impl("inverse_rms", &satformer::ops::inverse_rms_autograd);
  library.impl("inverse_rms_backward", &satformer::ops::inverse_rms_backward_autograd);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  library.impl("depth_weighted_sum_backward_", &satformer::ops::depth_sum_backward_add_version);
}
