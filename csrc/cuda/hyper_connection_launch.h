#pragma once
// What the tensor side (hyper_connection.cpp) hands to the launchers (hyper_connection.cu): raw pointers, sizes and
// strides, so that neither the kernels nor nvcc see a torch header. Strides count elements; the last dimension is
// contiguous. float32, bfloat16, float16.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

// Streams are [B, T, n, d], rows [B, T, d] with n-stride 0. Sizes::H is n, Sizes::hd is d.
struct HyperConnectionLaunch {
  Sizes sizes;
  DType dtype;
  Source streams;
  const float *static_alpha, *static_beta;  // [n, n+1], [n]
  const float *projections, *offsets,
      *means;                             // [n+2, d], [n+2], [n+2]; null: static (ops/hyper_connection_checks.h)
  const float *alpha_scale, *beta_scale;  // [1]
  float norm_eps;
  bool layer_norm, use_tanh;
};

struct HyperConnectionReadLaunch {
  HyperConnectionLaunch common;
  void *input, *mixed;  // [B, T, d], [B, T, n, d], contiguous
  float *beta, *kept;   // [B, T, n], [B, T, n, n+4]
};

struct HyperConnectionReadBackwardLaunch {
  HyperConnectionLaunch common;
  Source grad_input, grad_mixed;
  const float *grad_beta, *kept;  // contiguous
  void* grad_streams;             // contiguous
  float* sums;                    // [hyper_connection_sums(n, d)]
  float* partials;                // [read_backward_chunks(B * T), hyper_connection_sums(n, d)] scratch
};

struct HyperConnectionWriteLaunch {
  Sizes sizes;
  DType dtype;
  void* result;
  Strides result_strides;
  Source mixed, out;
  const float* beta;  // [B, T, n]
};

struct HyperConnectionWriteBackwardLaunch {
  Sizes sizes;
  DType dtype;
  Source grad, out;
  const float* beta;  // [B, T, n]
  float* grad_beta;   // [B, T, n]
  void* grad_out;     // [B, T, d], contiguous
};

int64_t read_backward_chunks(int64_t tokens);
cudaError_t launch_read(const HyperConnectionReadLaunch& arguments, cudaStream_t stream);
// cudaErrorInvalidValue where n and d are too large for a block's shared memory: (n + 2) d > about 56,000.
cudaError_t launch_read_backward(const HyperConnectionReadBackwardLaunch& arguments, cudaStream_t stream);
cudaError_t launch_write(const HyperConnectionWriteLaunch& arguments, cudaStream_t stream);
cudaError_t launch_write_backward(const HyperConnectionWriteBackwardLaunch& arguments, cudaStream_t stream);

}  // namespace satformer::ops::cuda
