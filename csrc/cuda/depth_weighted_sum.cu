// Launchers: choose the element type, the bound of the ways and the width of loads.
#include "csrc/cuda/depth_weighted_sum_backward_kernel.cuh"
#include "csrc/cuda/dispatch.cuh"
#include "csrc/cuda/inverse_rms_kernel.cuh"
#include "csrc/cuda/launch.cuh"

namespace satformer::ops::cuda {
namespace {

// Whether every row of every tensor of the sum starts on 16 bytes.
template <typename T, typename pointer>
bool packs(const DepthSumLaunch& a, const TokenRows<pointer>& rows) {
  return rows_start_on(16, rows.data, sizeof(T), {rows.stride_b, rows.stride_t, 0}, {a.B, a.T, 1, a.d});
}
template <typename T>
bool packs(const DepthSumLaunch& a) {
  bool all = a.d % Pack<T>::kSize == 0 && packs<T>(a, a.base);
  for (int j = 0; j < a.sources; ++j) {
    all = all && packs<T>(a, a.source[j]) && (!a.source_norms || starts_on(16, a.norm_weights[j]));
  }
  for (int c = 0; c < a.ways && a.output_norms; ++c) all = all && starts_on(16, a.output_norm_weights[c]);
  return all;
}
template <typename T>
bool packs(const DepthSumLaunch& a, const DepthSumBackwardLaunch& out) {
  bool all = packs<T>(a) && starts_on(16, out.base);
  for (int c = 0; c < a.ways; ++c) all = all && packs<T>(a, out.grads[c]);
  for (int j = 0; j < a.sources && out.writes_sources; ++j) all = all && packs<T>(a, out.sources[j]);
  return all;
}

// Calls f(Constant<W>, Constant<P>) for the bound W of the ways and the columns P that a thread reads at once.
template <typename T, typename Function>
cudaError_t with_bounds(int ways, bool packed, const Function& f) {
  constexpr int kPack = Pack<T>::kSize;
  if (ways == 1) return packed ? f(Constant<1>{}, Constant<kPack>{}) : f(Constant<1>{}, Constant<1>{});
  if (ways <= 4) return packed ? f(Constant<4>{}, Constant<kPack>{}) : f(Constant<4>{}, Constant<1>{});
  // Twice the sums: half the columns, so that all stay in registers.
  if constexpr (kPack == 4) {
    if (packed) return f(Constant<8>{}, Constant<4>{});
  }
  return f(Constant<8>{}, Constant<1>{});
}

template <typename Kernel>
cudaError_t allow_shared(Kernel kernel, size_t bytes) {
  if (bytes <= 32 * 1024) return cudaSuccess;  // the least that is free beside the static shared memory
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

template <typename T>
cudaError_t token_gradients(const DepthSumLaunch& a, const DepthSumBackwardLaunch& out, bool packed,
                            cudaStream_t stream) {
  const int64_t tokens = a.B * a.T;
  // Weights per token need no sums over tokens: a block each.
  const TokenChunks chunks = a.weights_per_token ? TokenChunks{tokens, 1} : chunks_of(tokens);
  return with_bounds<T>(a.ways, packed, [&](auto ways, auto pack) {
    constexpr int kW = decltype(ways)::value, kP = decltype(pack)::value;
    const auto kernel = depth_sum_backward_kernel<T, kW, kP>;
    const size_t shared =
        sizeof(float) * (static_cast<size_t>(a.ways * a.d) + static_cast<size_t>(kMaxTokenWarps * a.sources * kW));
    if (const cudaError_t error = allow_shared(kernel, shared)) return error;
    const LaunchShape shape{static_cast<unsigned>(chunks.count()), threads_for_row(a.d, kP), stream, shared};
    return launch(kernel, shape, a, out, chunks);
  });
}

template <typename T>
cudaError_t norm_weight_gradients(const DepthSumLaunch& a, const DepthSumBackwardLaunch& out, bool packed,
                                  cudaStream_t stream) {
  const TokenChunks chunks = chunks_of(a.B * a.T);
  return with_bounds<T>(a.ways, packed, [&](auto ways, auto pack) {
    constexpr int kW = decltype(ways)::value, kP = decltype(pack)::value;
    const auto kernel = depth_norm_weights_kernel<T, kW, kP>;
    const size_t shared = sizeof(float) * 32 * kP * static_cast<size_t>(a.sources + a.ways);
    if (const cudaError_t error = allow_shared(kernel, shared)) return error;
    const int64_t tiles = (a.d + 32 * kP - 1) / (32 * kP);
    const LaunchShape shape{dim3(static_cast<unsigned>(chunks.count()), static_cast<unsigned>(tiles)), 32, stream,
                            shared};
    return launch(kernel, shape, a, out, chunks);
  });
}

// result = the sum of the chunks' partials.
cudaError_t sum_chunks(float* result, const float* partials, int64_t tokens, int64_t stride, int64_t n,
                       cudaStream_t stream) {
  if (!result || n == 0) return cudaSuccess;
  const LaunchShape shape{static_cast<unsigned>((n + kMaxTokenThreads - 1) / kMaxTokenThreads), kMaxTokenThreads,
                          stream};
  return launch(sum_chunks_kernel, shape, result, partials, chunks_of(tokens).count(), stride, n);
}

bool inverse_packs(const InverseRmsLaunch& a, int64_t size) {
  return starts_on(16, a.x) && starts_on(16, a.grad_x) && a.d % size == 0 && (a.rows == 1 || a.stride % size == 0);
}

}  // namespace

int64_t depth_sum_chunks(int64_t tokens) { return chunks_of(tokens).count(); }

cudaError_t launch_depth_sum(const DepthSumLaunch& a, const DepthSumOutputsLaunch& out, cudaStream_t stream) {
  if (a.B * a.T * a.d == 0) return cudaSuccess;
  return launch_with_type(a.dtype, [&](auto type) {
    using T = TypeOf<decltype(type)>;
    bool packed = packs<T>(a);
    for (int c = 0; c < a.ways; ++c) packed = packed && starts_on(16, out.out[c]);
    return with_bounds<T>(a.ways, packed, [&](auto ways, auto pack) {
      constexpr int kW = decltype(ways)::value, kP = decltype(pack)::value;
      const auto kernel = depth_sum_kernel<T, kW, kP>;
      const size_t shared = a.output_norms ? sizeof(float) * kW * static_cast<size_t>(a.d) : 0;
      if (const cudaError_t error = allow_shared(kernel, shared)) return error;
      const LaunchShape shape{static_cast<unsigned>(a.B * a.T), threads_for_row(a.d, kP), stream, shared};
      return launch(kernel, shape, a, out);
    });
  });
}

cudaError_t launch_depth_sum_backward(const DepthSumLaunch& a, const DepthSumBackwardLaunch& out, cudaStream_t stream) {
  const int64_t tokens = a.B * a.T, rows = a.sources + a.ways;
  const bool with_norm_weights = out.norm_weights || out.output_norm_weights;
  if (tokens > 0) {
    const cudaError_t error = launch_with_type(a.dtype, [&](auto type) {
      using T = TypeOf<decltype(type)>;
      const bool packed = packs<T>(a, out);
      const cudaError_t first = token_gradients<T>(a, out, packed, stream);
      if (first != cudaSuccess || !with_norm_weights || a.d == 0) return first;
      return norm_weight_gradients<T>(a, out, packed, stream);
    });
    if (error != cudaSuccess) return error;
  }
  if (out.weights && !a.weights_per_token) {
    const int64_t n = static_cast<int64_t>(a.ways) * a.sources;
    if (const cudaError_t error = sum_chunks(out.weights, out.weight_partials, tokens, n, n, stream)) {
      return error;
    }
  }
  if (!with_norm_weights) return cudaSuccess;
  const cudaError_t error =
      sum_chunks(out.norm_weights, out.norm_partials, tokens, rows * a.d, a.sources * a.d, stream);
  if (error != cudaSuccess) return error;
  const float* partials = out.norm_partials + a.sources * a.d;
  return sum_chunks(out.output_norm_weights, partials, tokens, rows * a.d, a.ways * a.d, stream);
}

cudaError_t launch_inverse_rms(const InverseRmsLaunch& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  return launch_with_type(a.dtype, [&](auto type) {
    using T = TypeOf<decltype(type)>;
    constexpr int kPack = Pack<T>::kSize;
    const bool packed = inverse_packs(a, kPack);
    const LaunchShape shape{static_cast<unsigned>(a.rows), threads_for_row(a.d, packed ? kPack : 1), stream};
    return packed ? launch(inverse_rms_kernel<T, kPack>, shape, a) : launch(inverse_rms_kernel<T, 1>, shape, a);
  });
}

cudaError_t launch_inverse_rms_backward(const InverseRmsLaunch& a, cudaStream_t stream) {
  if (a.rows * a.d == 0) return cudaSuccess;
  return launch_with_type(a.dtype, [&](auto type) {
    using T = TypeOf<decltype(type)>;
    constexpr int kPack = Pack<T>::kSize;
    const bool packed = inverse_packs(a, kPack);
    const LaunchShape shape{static_cast<unsigned>(a.rows), threads_for_row(a.d, packed ? kPack : 1), stream};
    return packed ? launch(inverse_rms_backward_kernel<T, kPack>, shape, a)
                  : launch(inverse_rms_backward_kernel<T, 1>, shape, a);
  });
}

}  // namespace satformer::ops::cuda
