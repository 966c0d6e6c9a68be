#include "csrc/ops/gated_value_mix.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <string>

#include "csrc/ops/gated_value_mix_calls.h"

TORCH_LIBRARY(satformer, library) {
  // Strides must reach the kernels as the model laid them out: a compiler may not repack a slice of a projection.
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  library.def(
      "gated_value_mix(Tensor v, Tensor first_values, Tensor logits, str gate=\"relu\", Tensor? scale=None, "
      "Tensor? shift=None) -> Tensor",
      tags);
  library.def(
      "gated_value_mix_(Tensor(a!) v, Tensor first_values, Tensor logits, str gate=\"relu\", Tensor? scale=None, "
      "Tensor? shift=None) -> ()",
      tags);
  library.def(
      "gated_value_mix_backward(Tensor grad, Tensor first_values, Tensor logits, str gate, Tensor? scale, "
      "Tensor? shift, bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor)",
      tags);
}

namespace satformer::ops {

const c10::TypedOperatorHandle<MixSignature>& mix_operator() {
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow("satformer::gated_value_mix", "").typed<MixSignature>();
  return handle;
}

const c10::TypedOperatorHandle<MixInPlaceSignature>& mix_in_place_operator() {
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow("satformer::gated_value_mix_", "").typed<MixInPlaceSignature>();
  return handle;
}

const c10::TypedOperatorHandle<MixBackwardSignature>& mix_backward_operator() {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("satformer::gated_value_mix_backward", "")
                                 .typed<MixBackwardSignature>();
  return handle;
}

at::Tensor gated_value_mix(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
                           const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift) {
  return mix_operator().call(v, first_values, logits, gate_name(gate), scale, shift);
}

at::Tensor& gated_value_mix_(at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
                             const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift) {
  mix_in_place_operator().call(v, first_values, logits, gate_name(gate), scale, shift);
  return v;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward(
    const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
    const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask) {
  return mix_backward_operator().call(grad, first_values, logits, gate_name(gate), scale, shift, output_mask);
}

}  // namespace satformer::ops
