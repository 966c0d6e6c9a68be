// Autograd: saves the arguments that the backward pass reads; the backward is the operator qk_norm_rope_mix_backward,
// and its own derivative goes through the composite definition.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/qk_norm_rope_mix_arguments.h"
#include "csrc/ops/qk_norm_rope_mix_calls.h"
#include "csrc/ops/qk_norm_rope_mix_reference.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void save(AutogradContext* context, const MixInputs& in) {
  const bool norm = in.q_weight.defined();
  const at::Tensor absent;
  context->save_for_backward({norm ? in.q : absent, norm ? in.k : absent, in.lambda2.defined() ? in.v : absent, in.cos,
                              in.sin, in.q_weight, in.k_weight, in.first_values, in.logits, in.lambda1, in.lambda2});
  context->saved_data["eps"] = in.eps;
  context->saved_data["gate"] = std::string(gate_name(in.gate));
}

MixInputs saved_inputs(AutogradContext* context) {
  const variable_list saved = context->get_saved_variables();
  return {saved[0],
          saved[1],
          saved[2],
          saved[3],
          saved[4],
          saved[5],
          saved[6],
          context->saved_data["eps"].toDouble(),
          saved[7],
          saved[8],
          gate_from_name(context->saved_data["gate"].toStringRef()),
          saved[9],
          saved[10]};
}

// The gradients that are wanted. Edges count the defined tensor arguments in their order: q 0, k 1, v 2, then the
// optional ones where given.
std::array<bool, 5> wanted_gradients(AutogradContext* context, const MixInputs& in) {
  std::size_t edge = 3;
  const auto wanted = [&](const at::Tensor& x) { return x.defined() && context->needs_input_grad(edge++); };
  const bool q_weight = wanted(in.q_weight), k_weight = wanted(in.k_weight), first_values = wanted(in.first_values);
  if (in.logits.defined()) ++edge;
  const bool lambda1 = wanted(in.lambda1), lambda2 = wanted(in.lambda2);
  return {q_weight, k_weight, first_values, lambda1, lambda2};
}

AllMixGradients backward_by_operator(const MixInputs& in, const MixOutputs& grads, std::array<bool, 5> wanted) {
  const auto target = [](const at::Tensor& like) {
    return like.defined() ? at::empty_symint(like.sym_sizes(), like.options()) : at::Tensor();
  };
  const MixGradientTargets targets{target(grads.q), target(grads.k), target(grads.v), target(in.logits)};
  AllMixGradients out;
  out.others = qk_norm_rope_mix_backward(in, grads, targets, wanted);
  out.q = targets.q, out.k = targets.k, out.v = targets.v, out.logits = targets.logits;
  return out;
}

// Outputs: q', k' and, where it is written, v'.
struct MixInputsFunction : torch::autograd::Function<MixInputsFunction> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const MixInputs& in, const at::Tensor& /*q*/,
                               const at::Tensor& /*k*/, const at::Tensor& /*v*/, const OptionalTensor& /*q_weight*/,
                               const OptionalTensor& /*k_weight*/, const OptionalTensor& /*first_values*/,
                               const OptionalTensor& /*logits*/, const OptionalTensor& /*lambda1*/,
                               const OptionalTensor& /*lambda2*/) {
    const at::AutoDispatchBelowADInplaceOrView below;
    MixOutputs out = call_qk_norm_rope_mix(in);
    save(context, in);
    variable_list list{std::move(out.q), std::move(out.k)};
    if (out.v.defined()) list.push_back(std::move(out.v));
    return list;
  }

  // One gradient for each argument of forward().
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const MixInputs in = saved_inputs(context);
    const MixOutputs grads{gradients[0], gradients[1], gradients.size() > 2 ? gradients[2] : at::Tensor()};
    const AllMixGradients out = at::GradMode::is_enabled()
                                    ? qk_norm_rope_mix_backward_reference(in, grads)
                                    : backward_by_operator(in, grads, wanted_gradients(context, in));
    return {{},
            out.q,
            out.k,
            out.v,
            out.others.q_weight,
            out.others.k_weight,
            out.others.first_values,
            out.logits,
            out.others.lambda1,
            out.others.lambda2};
  }
};

OptionalTensor if_defined(const at::Tensor& x) { return x.defined() ? OptionalTensor(x) : std::nullopt; }

MixOutputs inputs_autograd(const MixInputs& in) {
  // The struct is no tensor to autograd: the tensors it may differentiate by follow one by one.
  variable_list out = MixInputsFunction::apply(in, in.q, in.k, in.v, if_defined(in.q_weight), if_defined(in.k_weight),
                                               if_defined(in.first_values), if_defined(in.logits),
                                               if_defined(in.lambda1), if_defined(in.lambda2));
  return {std::move(out[0]), std::move(out[1]), out.size() > 2 ? std::move(out[2]) : at::Tensor()};
}

bool requires_grad(std::initializer_list<at::Tensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& x) { return x.defined() && x.requires_grad(); });
}

MixGradients backward_autograd(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets,
                               std::array<bool, 5> output_mask) {
  TORCH_CHECK(!at::GradMode::is_enabled() ||
                  !requires_grad({grads.q, grads.k, grads.v, in.q, in.k, in.v, in.q_weight, in.k_weight,
                                  in.first_values, in.logits, in.lambda1, in.lambda2, targets.q, targets.k, targets.v,
                                  targets.logits, targets.first_values}),
              "qk_norm_rope_mix_backward: writes its targets and has no derivative of its own; call it without "
              "gradient mode, or differentiate qk_norm_rope_mix twice");
  const at::AutoDispatchBelowAutograd below;
  return qk_norm_rope_mix_backward(in, grads, targets, output_mask);
}

// The version counters must see the writes.
MixGradients backward_version(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets,
                              std::array<bool, 5> output_mask) {
  MixGradients out;
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    out = qk_norm_rope_mix_backward(in, grads, targets, output_mask);
  }
  for (const at::Tensor& x : {targets.q, targets.k, targets.v, targets.logits, targets.first_values}) {
    if (x.defined()) torch::autograd::impl::bump_version(x);
  }
  return out;
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;
  library.impl("qk_norm_rope_mix", &qk_norm_rope_mix_entry<&inputs_autograd>);
  library.impl("qk_norm_rope_mix_backward", &qk_norm_rope_mix_backward_entry<&backward_autograd>);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  using namespace satformer::ops;
  library.impl("qk_norm_rope_mix_backward", &qk_norm_rope_mix_backward_entry<&backward_version>);
}
