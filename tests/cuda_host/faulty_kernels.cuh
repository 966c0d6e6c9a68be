// Kernels with one deliberate fault each, and the corrected form where kFixed is true.
#pragma once
#include "csrc/cuda/vector_io.cuh"

namespace satformer::faulty {

template <bool kFixed>
__global__ void missing_barrier(float* out, const float* in) {  // reverses a block
  __shared__ float values[256];
  values[threadIdx.x] = in[threadIdx.x];
  if (kFixed) __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

// Sums pairs in place; only some orders of the threads show that the second barrier is missing.
template <bool kFixed>
__global__ void missing_second_barrier(float* out, const float* in) {
  __shared__ float values[256];
  const unsigned t = threadIdx.x;
  values[t] = in[t];
  __syncthreads();
  const float sum = values[t] + values[t ^ 1];
  if (kFixed) __syncthreads();
  values[t] = sum;
  __syncthreads();
  out[t] = values[t];
}

template <bool kFixed>
__global__ void missing_syncwarp(float* out, const float* in) {  // swaps neighbours
  __shared__ float values[32];
  values[threadIdx.x] = in[threadIdx.x];
  if (kFixed) __syncwarp();
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}

template <bool kFixed>
__global__ void sum_without_atomic(float* out, const float* in) {
  if (kFixed) {
    atomicAdd(out, in[blockIdx.x]);
  } else {
    *out += in[blockIdx.x];  // two blocks, nothing between them
  }
}

__global__ void write_past_end(float* out, int n) {
  for (int i = static_cast<int>(threadIdx.x); i <= n; i += static_cast<int>(blockDim.x)) out[i] = 1.f;
}
__global__ void read_past_end(float* out, const float* in, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) out[i] = in[i + 1];
}
__global__ void shared_past_end(float* out, int n) {
  __shared__ float values[64];
  values[threadIdx.x + static_cast<unsigned>(n)] = 1.f;
  out[threadIdx.x] = values[threadIdx.x];
}
__global__ void dynamic_shared_past_end(float* out) {
  extern __shared__ float dynamic_values[];
  dynamic_values[threadIdx.x + 1] = 1.f;
  __syncthreads();
  out[threadIdx.x] = dynamic_values[threadIdx.x];
}
__global__ void misaligned_pack(float* out, const float* in) {
  ops::cuda::store_pack(out + threadIdx.x * 4, ops::cuda::load_pack(in + 1 + threadIdx.x * 4));
}
__global__ void unwritten_shared(float* out) {
  __shared__ float values[64];
  if (threadIdx.x < 63) values[threadIdx.x] = 1.f;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void barrier_in_branch(float* out) {
  if (threadIdx.x < 40) __syncthreads();
  out[threadIdx.x] = 1.f;
}
__global__ void barrier_in_both_branches(float* out) {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    out[threadIdx.x] = 2.f;
    __syncthreads();
  }
}
__global__ void barrier_against_shuffle(float* out) {
  if (threadIdx.x == 3) __syncthreads();
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.f, 1);
}
__global__ void shuffle_without_a_lane(float* out) {
  if (threadIdx.x == 7) return;
  out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.f, 0);
}
__global__ void shuffle_outside_its_mask(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1.f, 20);
}

__global__ void correct(float* out) {  // barriers and shuffles
  float x = static_cast<float>(threadIdx.x);
  for (int k = 0; k < 10; ++k) {
    __syncthreads();
    x = __shfl_xor_sync(0xffffffffu, x, 1);
  }
  out[threadIdx.x] = x;
}

}  // namespace satformer::faulty
