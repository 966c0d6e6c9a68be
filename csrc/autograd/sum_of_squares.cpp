// Autograd: refused where it would have to record; the reference is differentiable.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/flat_list.h"
#include "csrc/ops/sum_of_squares.h"

namespace satformer::ops {
namespace {

at::Tensor sum_of_squares_autograd(at::TensorList tensors) {
  check_not_recorded("sum_of_squares", {{"tensors", tensors}}, "call it under no_grad, or use the composite reference");
  const at::AutoDispatchBelowADInplaceOrView below;
  return sum_of_squares(tensors);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;

  implement<"sum_of_squares", &sum_of_squares_autograd>(library);
}
