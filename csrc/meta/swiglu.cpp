// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/swiglu_arguments.h"

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("swiglu", &satformer::ops::check_swiglu);
  library.impl("swiglu_backward", &satformer::ops::check_swiglu_backward);
}
