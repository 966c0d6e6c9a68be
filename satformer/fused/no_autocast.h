#pragma once
#include <ATen/autocast_mode.h>

namespace satformer::nn {

// Inside it autocast leaves everything as it is: for code that chooses its dtypes itself.
class NoAutocast {
 public:
  explicit NoAutocast(at::DeviceType device)
      : exclude_(at::autocast::get_autocast_dispatch_key_from_device_type(device)) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard exclude_;
};

}  // namespace satformer::nn
