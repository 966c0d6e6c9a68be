#include "csrc/ops/gated_value_mix.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/gated_value_mix_checks.h"
#include "csrc/ops/row_arguments.h"

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
namespace {

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
at::Tensor gated_value_mix_meta(const GatedValueMixArguments& in) {
  check_gated_value_mix(in, /*in_place=*/false);
  return at::empty_symint(in.values.sym_sizes(), in.values.options());
}

void gated_value_mix_in_place_meta(const GatedValueMixArguments& in) { check_gated_value_mix(in, /*in_place=*/true); }

Gradients gated_value_mix_backward_meta(const GatedValueMixArguments& in, std::array<bool, 4> output_mask) {
  check_gated_value_mix_backward(in);
  const std::array<bool, 4> wanted = wanted_gradients(output_mask, in.scale, in.shift);
  const auto empty_if = [](bool condition, const at::Tensor& x) {
    return condition ? at::empty_symint(x.sym_sizes(), x.options()) : at::Tensor();
  };
  return {empty_if(wanted[0], in.first_values), empty_if(wanted[1], in.logits),
          empty_if(wanted[2], in.scale.value_or(at::Tensor())), empty_if(wanted[3], in.shift.value_or(at::Tensor()))};
}

}  // namespace

at::Tensor gated_value_mix(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
                           const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift) {
  static const Operator<decltype(gated_value_mix)> op("satformer::gated_value_mix");
  return op(v, first_values, logits, gate, scale, shift);
}

at::Tensor& gated_value_mix_(at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
                             const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift) {
  static const Operator<decltype(gated_value_mix_in_place_meta)> op("satformer::gated_value_mix_");
  op({v, first_values, logits, gate, scale, shift});
  return v;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward(
    const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
    const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask) {
  static const Operator<decltype(gated_value_mix_backward)> op("satformer::gated_value_mix_backward");
  return op(grad, first_values, logits, gate, scale, shift, output_mask);
}

}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"gated_value_mix", &gated_value_mix_meta>(library);
  implement<"gated_value_mix_", &gated_value_mix_in_place_meta>(library);
  implement<"gated_value_mix_backward", &gated_value_mix_backward_meta>(library);
}
