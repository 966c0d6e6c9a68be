#pragma once
// The gradients' global norm and its clipping.
#include <ATen/core/Tensor.h>

#include <vector>

namespace satformer::optim {

// sqrt(sum over all tensors of x^2), summed in float64; infinity or NaN when an entry is not finite. 0 without tensors.
// Waits for the device.
double global_norm(const std::vector<at::Tensor>& tensors);

// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (off).
double clip_factor(double norm, double max_norm);

}  // namespace satformer::optim
