#include "satformer/runtime/compute_dtype.h"

#include <ATen/autocast_mode.h>

namespace satformer {

at::ScalarType compute_dtype(const at::Tensor& x) {
  const at::DeviceType device = x.device().type();
  // Autocast leaves float64 alone.
  if (x.scalar_type() == at::kDouble || !at::autocast::is_autocast_enabled(device)) return x.scalar_type();
  return at::autocast::get_autocast_dtype(device);
}

}  // namespace satformer
