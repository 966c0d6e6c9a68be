// Kernels with one deliberate error each, and the corrected form where `fixed` is true.
#pragma once
#include "csrc/cuda/device_common.cuh"

namespace faulty {
template <bool fixed>
__global__ void missing_sync(float* out, const float* in) {  // reverses a block
  __shared__ float s[256];
  s[threadIdx.x] = in[threadIdx.x];
  if (fixed) __syncthreads();
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
// Sums pairs in place: the second barrier is missing, only some orders of the threads show it.
template <bool fixed>
__global__ void missing_second_sync(float* out, const float* in) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  const float x = s[t] + s[t ^ 1];
  if (fixed) __syncthreads();
  s[t] = x;
  __syncthreads();
  out[t] = s[t];
}
template <bool fixed>
__global__ void missing_syncwarp(float* out, const float* in) {
  __shared__ float s[32];
  s[threadIdx.x] = in[threadIdx.x];
  if (fixed) __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void write_past_end(float* out, int n) {
  for (int i = threadIdx.x; i <= n; i += blockDim.x) out[i] = 1.f;
}
__global__ void read_past_end(float* out, const float* in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i + 1];
}
__global__ void uninitialised_shared(float* out) {
  __shared__ float s[64];
  if (threadIdx.x < 63) s[threadIdx.x] = 1.f;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
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
__global__ void shuffle_lane_missing(float* out) {
  if (threadIdx.x == 7) return;
  out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.f, 0);
}
__global__ void shuffle_outside_mask(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1.f, 20);
}
__global__ void shared_past_end(float* out, int n) {
  __shared__ float s[64];
  s[threadIdx.x + n] = 1.f;
  out[threadIdx.x] = s[threadIdx.x];
}
__global__ void dynamic_shared_past_end(float* out) {
  extern __shared__ float faulty_smem[];
  faulty_smem[threadIdx.x + 1] = 1.f;
  __syncthreads();
  out[threadIdx.x] = faulty_smem[threadIdx.x];
}
__global__ void misaligned_vector(float* out, const float* in) {
  satformer::ops::cuda::store_pack(out + threadIdx.x * 4, satformer::ops::cuda::load_pack(in + 1 + threadIdx.x * 4));
}
__global__ void plain(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = out[i] * 0.5f + 1.f;
}
__global__ void barriers(float* out, int n) {
  for (int k = 0; k < n; k++) __syncthreads();
  out[threadIdx.x] = 1.f;
}
__global__ void shuffles(float* out, int n) {
  float x = 1.f;
  for (int k = 0; k < n; k++) x = __shfl_xor_sync(0xffffffffu, x, 1);
  out[threadIdx.x] = x;
}
}  // namespace faulty
