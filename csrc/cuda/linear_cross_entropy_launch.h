#pragma once
// What linear_cross_entropy.cpp hands to the launcher of linear_cross_entropy.cu for one chunk's logits. Formulas:
// csrc/ops/linear_cross_entropy.h. No torch headers.
#include <cuda_runtime_api.h>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

struct LogitArguments {
  int64_t rows, V;
  Output logits;           // read; with_gradients, overwritten with the gradients
  const int64_t* targets;  // [rows]
  float* losses;           // [rows]
  int64_t ignore_index;
  float scale;
  bool with_gradients;
};

cudaError_t launch_logit_rows(const LogitArguments& arguments, cudaStream_t stream);

}  // namespace satformer::ops::cuda
