#pragma once
// What the tensor side (qk_norm_rope_mix.cpp) hands to the launchers (qk_norm_rope_mix.cu): raw pointers, sizes and
// strides, so that neither the kernels nor nvcc see a torch header. Strides count elements.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "csrc/cuda/types.h"
#include "csrc/ops/gate.h"
#include "csrc/ops/limits.h"
#include "csrc/ops/value_mix.h"

namespace satformer::ops::cuda {

// cos or sin: hd/2 numbers a token.
struct Table {
  const float* data;
  int64_t stride_b, stride_t;
};

// What forward and backward share. Values are of `dtype` (not float64); hd is even, at most kLargestCudaHeadDim.
struct AttentionPass {
  int64_t B, T, H, H_kv, hd;
  DType dtype;
  Table cos, sin;
  const float *q_weight, *k_weight;  // [hd]; null: no qk-norm
  float eps;
  ValueMix mix;
  Gate gate;
  GateSource logits;
  Source first_values;
  const float *lambda1, *lambda2;
  // The launcher sets these. Blocks work on rows of q, then of k, then of v.
  int lanes = 0;  // threads a row
  unsigned q_blocks = 0, k_blocks = 0, v_blocks = 0;
};

struct MixInputsArguments {
  AttentionPass pass;
  Source q, k, v;
  Target to_q, to_k;
  Target to_v;  // null: v' is not written
};

// Null where not wanted or absent.
struct MixInputsBackwardArguments {
  AttentionPass pass;
  Source q, k, v;
  Source grad_q, grad_k;
  Source grad_v;  // null: the rows of v are left alone
  Target to_q, to_k, to_v;
  Target to_logits;  // [B, T, H_kv], the logits' dtype
  Target to_first_values;
  DType first_values_dtype;              // of to_first_values: dtype or float32
  bool adds_first_values;                // to it, instead of overwriting it
  float *q_weight_grad, *k_weight_grad;  // [hd]
  float *lambda1_grad, *lambda2_grad;    // []
  // Scratch. Sums of a block each, added in order: [blocks, hd], [blocks, hd], [blocks, 2]; backward_blocks() says how
  // many. dots [B, T, H_kv]: must be given when the gate is one of the softmax gates.
  float *q_sums, *k_sums, *lambda_sums;
  float* dots;
};

// An upper limit of the blocks for each of q, k and v in the backward pass; a function of the sizes alone.
int64_t backward_blocks(const AttentionPass& pass);

cudaError_t launch_qk_norm_rope_mix(MixInputsArguments arguments, cudaStream_t stream);
cudaError_t launch_qk_norm_rope_mix_backward(MixInputsBackwardArguments arguments, cudaStream_t stream);

}  // namespace satformer::ops::cuda
