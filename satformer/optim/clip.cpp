#include "satformer/optim/clip.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>

namespace satformer::optim {

double global_norm(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return 0.0;
  const at::NoGradGuard no_grad;
  const at::Tensor norms = at::stack(at::_foreach_norm(tensors, 2)).to(at::kDouble);
  return at::linalg_vector_norm(norms, 2).item<double>();
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace satformer::optim
