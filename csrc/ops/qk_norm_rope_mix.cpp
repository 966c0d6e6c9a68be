#include "csrc/ops/qk_norm_rope_mix.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/qk_norm_rope_mix_checks.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  // Strides must reach the kernels as the model laid them out: a compiler may not repack a slice of a projection.
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  library.def(
      "qk_norm_rope_mix(Tensor q, Tensor k, Tensor v, Tensor cos, Tensor sin, Tensor? q_weight=None, "
      "Tensor? k_weight=None, float eps=1e-05, Tensor? first_values=None, Tensor? logits=None, str gate=\"relu\", "
      "Tensor? lambda1=None, Tensor? lambda2=None, bool copy_values=True) -> (Tensor, Tensor, Tensor)",
      tags);
  library.def(
      "qk_norm_rope_mix_backward(Tensor grad_q, Tensor grad_k, Tensor? grad_v, Tensor? q, Tensor? k, Tensor? v, "
      "Tensor cos, Tensor sin, Tensor? q_weight, Tensor? k_weight, float eps, Tensor? first_values, Tensor? logits, "
      "str gate, Tensor? lambda1, Tensor? lambda2, Tensor(a!) q_target, Tensor(b!) k_target, Tensor(c!)? v_target, "
      "Tensor(d!)? logits_target, Tensor(e!)? first_values_target, bool[5] output_mask) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor)",
      tags);
}

namespace satformer::ops {
namespace {

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
MixOutputs qk_norm_rope_mix_meta(const MixInputs& in) {
  check_qk_norm_rope_mix(in);
  return outputs_of_qk_norm_rope_mix(in);
}

MixGradients qk_norm_rope_mix_backward_meta(const MixOutputs& grads, const MixBackwardInputs& in,
                                            const MixGradientTargets& targets, std::array<bool, 5> output_mask) {
  check_qk_norm_rope_mix_backward(in, grads, targets);
  return outputs_of_qk_norm_rope_mix_backward(in, targets, output_mask);
}

}  // namespace

MixOutputs qk_norm_rope_mix(const MixInputs& in) {
  static const Operator<MixOutputs(const MixInputs&)> op("satformer::qk_norm_rope_mix");
  MixOutputs out = op(in);
  if (!out.v.defined()) out.v = in.v;
  return out;
}

MixGradients qk_norm_rope_mix_backward(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets,
                                       std::array<bool, 5> output_mask) {
  static const Operator<decltype(qk_norm_rope_mix_backward_meta)> op("satformer::qk_norm_rope_mix_backward");
  return op(grads, MixBackwardInputs{in}, targets, output_mask);
}

}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"qk_norm_rope_mix", &qk_norm_rope_mix_meta>(library);
  implement<"qk_norm_rope_mix_backward", &qk_norm_rope_mix_backward_meta>(library);
}
