#include "satformer/optim/clip.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "csrc/ops/sum_of_squares.h"

namespace satformer::optim {

double global_norm(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  return std::sqrt(ops::sum_of_squares(tensors).item<double>());
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace satformer::optim
