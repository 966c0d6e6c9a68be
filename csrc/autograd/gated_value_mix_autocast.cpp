// Autocast: values in the autocast dtype; logits stay in float32 or that dtype, scale and shift as they are.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/gated_value_mix_calls.h"

namespace satformer::ops {
namespace {

at::Tensor cast_logits(const at::Tensor& logits, at::ScalarType values_dtype, c10::DeviceType device) {
  return logits.scalar_type() == at::kFloat ? logits : at::autocast::cached_cast(values_dtype, logits, device);
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
at::Tensor mix_autocast(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                        std::string_view gate, const std::optional<at::Tensor>& scale,
                        const std::optional<at::Tensor>& shift) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(kDevice);
  const at::Tensor values = at::autocast::cached_cast(dtype, v, kDevice);
  return mix_operator().call(values, at::autocast::cached_cast(dtype, first_values, kDevice),
                             cast_logits(logits, values.scalar_type(), kDevice), gate, scale, shift);
}

// v is written, so its dtype decides.
template <c10::DispatchKey kKey, c10::DeviceType kDevice>
void mix_in_place_autocast(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                           std::string_view gate, const std::optional<at::Tensor>& scale,
                           const std::optional<at::Tensor>& shift) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const at::ScalarType dtype = v.scalar_type();
  mix_in_place_operator().call(v, at::autocast::cached_cast(dtype, first_values, kDevice),
                               cast_logits(logits, dtype, kDevice), gate, scale, shift);
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
void register_autocast(torch::Library& library) {
  library.impl("gated_value_mix", &mix_autocast<kKey, kDevice>);
  library.impl("gated_value_mix_", &mix_in_place_autocast<kKey, kDevice>);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  satformer::ops::register_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCUDA, library) {
  satformer::ops::register_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>(library);
}
