// Autocast: q, k, v and first values in the autocast dtype; logits stay in float32 or that dtype. Tables, norm weights
// and lambdas are float32 already.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/qk_norm_rope_mix_calls.h"

namespace satformer::ops {
namespace {

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
MixOutputs inputs_autocast(const MixInputs& inputs) {
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

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  using namespace satformer::ops;
  library.impl("qk_norm_rope_mix",
               &qk_norm_rope_mix_entry<&inputs_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCUDA, library) {
  using namespace satformer::ops;
  library.impl("qk_norm_rope_mix",
               &qk_norm_rope_mix_entry<&inputs_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>);
}
