// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/swiglu_arguments.h"

namespace satformer::ops {
namespace {

void swiglu_backward_in_place_meta(at::Tensor& packed, at::Tensor& grad) {
  check_swiglu_backward_in_place(packed, grad);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("swiglu", &satformer::ops::check_swiglu);
  library.impl("swiglu_backward", &satformer::ops::check_swiglu_backward);
  library.impl("swiglu_backward_", &satformer::ops::swiglu_backward_in_place_meta);
}
