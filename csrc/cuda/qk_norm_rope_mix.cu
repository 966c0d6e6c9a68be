// Launchers: choose the element type, the width of loads and the threads a row, and divide the blocks.
#include <algorithm>
#include <initializer_list>

#include "csrc/cuda/dispatch.cuh"
#include "csrc/cuda/launch.cuh"
#include "csrc/cuda/qk_norm_rope_mix_backward_kernel.cuh"
#include "csrc/cuda/qk_norm_rope_mix_kernel.cuh"

namespace satformer::ops::cuda {
namespace {

// Enough blocks to fill a large GPU; more would only make more sums.
constexpr unsigned kMostBackwardBlocks = 1024;

struct RowsInMemory {
  const void* data;  // null: absent, fits every width
  Strides strides;
  int64_t heads;
  size_t element_size;
};
RowsInMemory rows(const Source& x, int64_t heads, size_t size) { return {x.data, x.strides, heads, size}; }
RowsInMemory rows(const Target& x, int64_t heads, size_t size) { return {x.data, x.strides, heads, size}; }

bool starts_on(size_t bytes, const RowsInMemory& x, const AttentionPass& pass) {
  return rows_start_on(bytes, x.data, x.element_size, x.strides, {pass.B, pass.T, x.heads, pass.hd});
}

// Whether threads can move `width` numbers of T at a time and hold a row in one step.
template <typename T>
bool fits(int width, const AttentionPass& pass, std::initializer_list<RowsInMemory> all) {
  const int64_t half = pass.hd / 2;
  if (half % width != 0 || half > 32 * width) return false;
  const auto table = [](const Table& x) { return RowsInMemory{x.data, {x.stride_b, x.stride_t, 0}, 1, sizeof(float)}; };
  const auto weight = [](const float* x) { return RowsInMemory{x, {0, 0, 0}, 1, sizeof(float)}; };
  for (const RowsInMemory& x : {table(pass.cos), table(pass.sin), weight(pass.q_weight), weight(pass.k_weight)}) {
    if (!starts_on(16, x, pass)) return false;
  }
  return std::all_of(all.begin(), all.end(), [&](const RowsInMemory& x) {
    return starts_on(std::min<size_t>(16, width * x.element_size), x, pass);
  });
}

// call(width, steps) with the widest loads that the rows allow, as compile-time numbers. Unaligned rows, or rows that
// one step does not hold, are read number by number.
template <typename T, typename Call>
cudaError_t with_width(const AttentionPass& pass, std::initializer_list<RowsInMemory> all, const Call& call) {
  constexpr int kWidest = 16 / sizeof(T);
  if (fits<T>(kWidest, pass, all)) {
    return call(Constant<kWidest>(), Constant<1>());
  }
  if constexpr (kWidest > 4) {  // 8 bytes: a projection whose width is a multiple of 4 alone
    if (fits<T>(4, pass, all)) return call(Constant<4>(), Constant<1>());
  }
  return call(Constant<1>(), Constant<kLargestCudaHeadDim / 2 / kWarp>());
}

template <typename T>
cudaError_t forward(MixInputsArguments a, cudaStream_t stream) {
  AttentionPass& p = a.pass;
  const auto launch_with = [&](auto width, auto steps) {
    p.lanes = lanes_for(p.hd / 2, width);
    p.q_blocks = blocks_for(p.B * p.T * p.H * p.lanes);
    p.k_blocks = blocks_for(p.B * p.T * p.H_kv * p.lanes);
    p.v_blocks = a.to_v.data ? p.k_blocks : 0;
    const unsigned blocks = p.q_blocks + p.k_blocks + p.v_blocks;
    return blocks ? launch(qk_norm_rope_mix_kernel<T, width(), steps()>, {blocks, kThreads, stream}, a) : cudaSuccess;
  };
  const size_t size = sizeof(T);
  return with_width<T>(
      p,
      {rows(a.q, p.H, size), rows(a.k, p.H_kv, size), rows(a.v, p.H_kv, size), rows(p.first_values, p.H_kv, size),
       rows(a.to_q, p.H, size), rows(a.to_k, p.H_kv, size), rows(a.to_v, p.H_kv, size)},
      launch_with);
}

unsigned capped_blocks(int64_t threads) {
  return static_cast<unsigned>(std::min<int64_t>((threads + kThreads - 1) / kThreads, kMostBackwardBlocks));
}

template <typename T>
cudaError_t backward(MixInputsBackwardArguments& a, cudaStream_t stream) {
  AttentionPass& p = a.pass;
  const auto launch_with = [&](auto width, auto steps) {
    p.lanes = lanes_for(p.hd / 2, width);
    p.q_blocks = capped_blocks(p.B * p.T * p.H * p.lanes);
    p.k_blocks = capped_blocks(p.B * p.T * p.H_kv * p.lanes);
    p.v_blocks = a.grad_v.data ? p.k_blocks : 0;
    const unsigned blocks = p.q_blocks + p.k_blocks + p.v_blocks;
    return blocks ? launch(qk_norm_rope_mix_backward_kernel<T, width(), steps()>, {blocks, kThreads, stream}, a)
                  : cudaSuccess;
  };
  const size_t size = sizeof(T), first_size = a.first_values_dtype == p.dtype ? sizeof(T) : sizeof(float);
  return with_width<T>(p,
                       {rows(a.q, p.H, size), rows(a.k, p.H_kv, size), rows(a.v, p.H_kv, size),
                        rows(a.grad_q, p.H, size), rows(a.grad_k, p.H_kv, size), rows(a.grad_v, p.H_kv, size),
                        rows(p.first_values, p.H_kv, size), rows(a.to_q, p.H, size), rows(a.to_k, p.H_kv, size),
                        rows(a.to_v, p.H_kv, size), rows(a.to_first_values, p.H_kv, first_size)},
                       launch_with);
}

cudaError_t softmax_backward(const MixInputsBackwardArguments& a, cudaStream_t stream) {
  const AttentionPass& p = a.pass;
  if (p.v_blocks == 0 || p.mix != ValueMix::kSelective || !is_over_heads(p.gate)) return cudaSuccess;
  const SoftmaxBackward b{{p.B, p.T, p.H_kv, p.hd}, p.gate, p.logits, a.dots, a.to_logits.data, a.to_logits.strides};
  return launch(softmax_backward_kernel, {blocks_for(p.B * p.T * 32), kThreads, stream}, b);
}

cudaError_t add_sums(const MixInputsBackwardArguments& a, cudaStream_t stream) {
  const AttentionPass& p = a.pass;
  const AllColumnSums all{{{a.q_sums, p.q_blocks, p.hd, p.hd, a.q_weight_grad},
                           {a.k_sums, p.k_blocks, p.hd, p.hd, a.k_weight_grad},
                           {a.lambda_sums, p.v_blocks, 2, 1, a.lambda1_grad},
                           {a.lambda_sums ? a.lambda_sums + 1 : nullptr, p.v_blocks, 2, 1, a.lambda2_grad}}};
  if (!a.q_weight_grad && !a.k_weight_grad && !a.lambda1_grad && !a.lambda2_grad) return cudaSuccess;
  const unsigned columns = static_cast<unsigned>((p.hd + 31) / 32);
  return launch(sums_kernel, {dim3(columns, kColumnSums), kThreads, stream}, all);
}

}  // namespace

int64_t backward_blocks(const AttentionPass& pass) {
  const int64_t threads = pass.B * pass.T * std::max(pass.H, pass.H_kv) * 32;  // at most 32 threads a row
  return capped_blocks(threads);
}

cudaError_t launch_qk_norm_rope_mix(MixInputsArguments a, cudaStream_t stream) {
  if (a.pass.hd % 2 != 0 || a.pass.hd > kLargestCudaHeadDim) return cudaErrorInvalidValue;
  return launch_with_type(a.pass.dtype, [&](auto type) { return forward<TypeOf<decltype(type)>>(a, stream); });
}

cudaError_t launch_qk_norm_rope_mix_backward(MixInputsBackwardArguments a, cudaStream_t stream) {
  if (a.pass.hd % 2 != 0 || a.pass.hd > kLargestCudaHeadDim) return cudaErrorInvalidValue;
  cudaError_t error =
      launch_with_type(a.pass.dtype, [&](auto type) { return backward<TypeOf<decltype(type)>>(a, stream); });
  if (error == cudaSuccess) error = softmax_backward(a, stream);
  return error == cudaSuccess ? add_sums(a, stream) : error;
}

}  // namespace satformer::ops::cuda
