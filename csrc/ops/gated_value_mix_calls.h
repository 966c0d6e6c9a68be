#pragma once
// The three operators as the dispatcher knows them: C++ signatures of the schemas in gated_value_mix.cpp and typed
// handles to call or redispatch them. For csrc alone; callers outside use gated_value_mix.h.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

namespace satformer::ops {

using Gradients4 = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

using MixSignature = at::Tensor(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                                std::string_view gate, const std::optional<at::Tensor>& scale,
                                const std::optional<at::Tensor>& shift);
using MixInPlaceSignature = void(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                                 std::string_view gate, const std::optional<at::Tensor>& scale,
                                 const std::optional<at::Tensor>& shift);
using MixBackwardSignature = Gradients4(const at::Tensor& grad, const at::Tensor& first_values,
                                        const at::Tensor& logits, std::string_view gate,
                                        const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift,
                                        std::array<bool, 4> output_mask);

const c10::TypedOperatorHandle<MixSignature>& mix_operator();
const c10::TypedOperatorHandle<MixInPlaceSignature>& mix_in_place_operator();
const c10::TypedOperatorHandle<MixBackwardSignature>& mix_backward_operator();

}  // namespace satformer::ops
