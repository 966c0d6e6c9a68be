#pragma once
// For nodes that choose their dtypes themselves.
#include <ATen/autocast_mode.h>

namespace satformer::fused {

// While it lives, autocast leaves everything on `device` as it is.
class NoAutocast {
 public:
  explicit NoAutocast(at::DeviceType device)
      : exclude_(at::autocast::get_autocast_dispatch_key_from_device_type(device)) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard exclude_;
};

}  // namespace satformer::fused
