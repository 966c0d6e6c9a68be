// Autograd: saves the arguments that the backward pass reads; the backward is the operator qk_norm_rope_mix_backward,
// and its own derivative goes through the composite definition. Autocast: q, k, v and first values in the autocast
// dtype; logits stay in float32 or that dtype; tables, norm weights and lambdas are float32 already.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/qk_norm_rope_mix_checks.h"
#include "csrc/ops/qk_norm_rope_mix_reference.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// v' is undefined where it was not written.
MixOutputs call_qk_norm_rope_mix(const MixInputs& in) {
  static const Operator<MixOutputs(const MixInputs&)> op("satformer::qk_norm_rope_mix");
  return op(in);
}

MixInputs read_by_backward(const MixInputs& in) {
  MixInputs kept = in;
  if (!in.q_weight.defined()) kept.q = kept.k = at::Tensor();
  if (!in.lambda2.defined()) kept.v = at::Tensor();
  return kept;
}

AllMixGradients backward_by_operator(AutogradContext* context, const MixInputs& in, const MixOutputs& grads) {
  const auto target = [](const at::Tensor& like) {
    return like.defined() ? at::empty_symint(like.sym_sizes(), like.options()) : at::Tensor();
  };
  const MixGradientTargets targets{target(grads.q), target(grads.k), target(grads.v), target(in.logits)};
  AllMixGradients out;
  out.others = qk_norm_rope_mix_backward(in, grads, targets,
                                         wanted(context, &MixInputs::q_weight, &MixInputs::k_weight,
                                                &MixInputs::first_values, &MixInputs::lambda1, &MixInputs::lambda2));
  out.q = targets.q, out.k = targets.k, out.v = targets.v, out.logits = targets.logits;
  return out;
}

// Outputs: q', k' and, where it is written, v'.
struct QkNormRopeMix : torch::autograd::Function<QkNormRopeMix> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const MixInputs& in, at::TensorList /*tensors*/) {
    const at::AutoDispatchBelowADInplaceOrView below;
    MixOutputs out = call_qk_norm_rope_mix(in);
    save_fields(context, in, read_by_backward(in));
    variable_list list{std::move(out.q), std::move(out.k)};
    if (out.v.defined()) list.push_back(std::move(out.v));
    return list;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto in = saved_fields<MixInputs>(context);
    const MixOutputs grads{gradients[0], gradients[1], gradients.size() > 2 ? gradients[2] : at::Tensor()};
    const AllMixGradients out = at::GradMode::is_enabled() ? qk_norm_rope_mix_backward_reference(in, grads)
                                                           : backward_by_operator(context, in, grads);
    MixInputs to;
    to.q = out.q, to.k = out.k, to.v = out.v, to.logits = out.logits;
    to.q_weight = out.others.q_weight, to.k_weight = out.others.k_weight;
    to.first_values = out.others.first_values;
    to.lambda1 = out.others.lambda1, to.lambda2 = out.others.lambda2;
    return gradients_for(context, to);
  }
};

MixOutputs qk_norm_rope_mix_autograd(const MixInputs& in) {
  const std::vector<at::Tensor> tensors = tensors_of(in);
  variable_list out = QkNormRopeMix::apply(in, at::TensorList(tensors));
  return {std::move(out[0]), std::move(out[1]), out.size() > 2 ? std::move(out[2]) : at::Tensor()};
}

MixGradients qk_norm_rope_mix_backward_autograd(const MixOutputs& grads, const MixBackwardInputs& in,
                                                const MixGradientTargets& targets, std::array<bool, 5> output_mask) {
  TORCH_CHECK(!at::GradMode::is_enabled() || (!requires_grad(grads) && !requires_grad(in) && !requires_grad(targets)),
              "qk_norm_rope_mix_backward: writes its targets and has no derivative of its own; call it without "
              "gradient mode, or differentiate qk_norm_rope_mix twice");
  const at::AutoDispatchBelowAutograd below;
  return qk_norm_rope_mix_backward(in, grads, targets, output_mask);
}

// The version counters must see the writes.
MixGradients qk_norm_rope_mix_backward_version(const MixOutputs& grads, const MixBackwardInputs& in,
                                               const MixGradientTargets& targets, std::array<bool, 5> output_mask) {
  MixGradients out;
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    out = qk_norm_rope_mix_backward(in, grads, targets, output_mask);
  }
  for_each_tensor(targets, [](const at::Tensor& x) { torch::autograd::impl::bump_version(x); });
  return out;
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
MixOutputs qk_norm_rope_mix_autocast(const MixInputs& inputs) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const auto cast = [](at::Tensor& x) {
    if (x.defined()) x = at::autocast::cached_cast(at::autocast::get_autocast_dtype(kDevice), x, kDevice);
  };
  MixInputs in = inputs;
  cast(in.q), cast(in.k), cast(in.v), cast(in.first_values);
  if (in.logits.defined() && in.logits.scalar_type() != at::kFloat) cast(in.logits);
  return call_qk_norm_rope_mix(in);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;
  implement<"qk_norm_rope_mix", &qk_norm_rope_mix_autograd>(library);
  implement<"qk_norm_rope_mix_backward", &qk_norm_rope_mix_backward_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  using namespace satformer::ops;
  implement<"qk_norm_rope_mix_backward", &qk_norm_rope_mix_backward_version>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  using namespace satformer::ops;
  implement<"qk_norm_rope_mix", &qk_norm_rope_mix_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>(
      library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCUDA, library) {
  using namespace satformer::ops;
  implement<"qk_norm_rope_mix", &qk_norm_rope_mix_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>(
      library);
}
