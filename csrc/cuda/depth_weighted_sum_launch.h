#pragma once
// What the tensor side (depth_weighted_sum.cpp) hands to the launchers (depth_weighted_sum.cu): raw pointers, sizes and
// strides, so that neither the kernels nor nvcc see a torch header. Strides count elements. The tables of pointers
// travel as kernel arguments, hence the limits.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

constexpr int kMaxSources = 64;
constexpr int kMaxWays = 8;

// [B, T, d], contiguous in d.
template <typename pointer_t>
struct TokenRows {
  pointer_t data;
  int64_t stride_b, stride_t;
};
using ReadRows = TokenRows<const void*>;
using WriteRows = TokenRows<void*>;

struct DepthSumLaunch {
  int64_t B, T, d;
  int sources, ways;
  DType dtype;  // not float64
  bool weights_per_token, source_norms, output_norms;
  float output_norm_eps;
  const float* weights;  // [B * T, ways, sources] or [ways, sources]
  ReadRows base;         // data null: absent
  ReadRows source[kMaxSources];
  const float* norm_weights[kMaxSources];      // [d]
  const float* inverse_rms[kMaxSources];       // [B * T]
  const float* output_norm_weights[kMaxWays];  // [d]
};

struct DepthSumOutputsLaunch {
  void* out[kMaxWays];  // [B, T, d], contiguous
};

// Null where not wanted. All but sources and base are float32.
struct DepthSumBackwardLaunch {
  ReadRows grads[kMaxWays];
  bool writes_sources, add_to_sources;
  WriteRows sources[kMaxSources];
  void* base;                  // [B, T, d], contiguous
  float* weights;              // the shape of the weights
  float* inverse_rms;          // [sources, B * T]
  float* norm_weights;         // [sources, d]
  float* output_norm_weights;  // [ways, d]
  // Scratch: with static weights [depth_sum_chunks(B * T), ways * sources]; with norm weights of either kind
  // [depth_sum_chunks(B * T), (sources + ways) * d]; with output norms [B * T, ways, 2].
  float *weight_partials, *norm_partials, *output_statistics;
};

int64_t depth_sum_chunks(int64_t tokens);
cudaError_t launch_depth_sum(const DepthSumLaunch& sum, const DepthSumOutputsLaunch& out, cudaStream_t stream);
cudaError_t launch_depth_sum_backward(const DepthSumLaunch& sum, const DepthSumBackwardLaunch& out,
                                      cudaStream_t stream);

// Rows of d numbers, `stride` apart; inverse, grad [rows]; grad_x contiguous.
struct InverseRmsLaunch {
  int64_t rows, d, stride;
  DType dtype;
  const void* x;
  float eps;
  float* inverse;     // written by the forward, read by the backward
  const float* grad;  // backward
  void* grad_x;       // backward
};
cudaError_t launch_inverse_rms(const InverseRmsLaunch& arguments, cudaStream_t stream);
cudaError_t launch_inverse_rms_backward(const InverseRmsLaunch& arguments, cudaStream_t stream);

}  // namespace satformer::ops::cuda
