// Launchers: choose the element type, the bound of the streams and the width of loads.
#include "csrc/cuda/dispatch.cuh"
#include "csrc/cuda/hyper_connection_backward_kernel.cuh"
#include "csrc/cuda/launch.cuh"

namespace satformer::ops::cuda {
namespace {

int64_t tokens_of(const Sizes& sizes) { return sizes.B * sizes.T; }

// Whether P neighbouring numbers of every row can be read at once.
template <typename T>
bool packs(const void* data, const Strides& strides, const Sizes& sizes) {
  return sizes.hd % Pack<T>::kSize == 0 && rows_start_on(16, data, sizeof(T), strides, sizes);
}
template <typename T>
bool packs(const Source& rows, const Sizes& sizes) {
  return packs<T>(rows.data, rows.strides, sizes);
}

// Calls f(Constant<N>, Constant<P>) for n <= N and the columns P that a thread reads at once.
template <typename T, typename Function>
cudaError_t with_bounds(int64_t n, bool packed, const Function& f) {
  constexpr int kPack = Pack<T>::kSize;
  if (n <= 4) return packed ? f(Constant<4>{}, Constant<kPack>{}) : f(Constant<4>{}, Constant<1>{});
  return f(Constant<8>{}, Constant<1>{});  // the rare case: registers for the sums, not for columns
}

unsigned grid(int64_t blocks) { return static_cast<unsigned>(blocks); }

}  // namespace

int64_t read_backward_chunks(int64_t tokens) { return chunks_of(tokens).count(); }

cudaError_t launch_read(const HyperConnectionReadLaunch& r, cudaStream_t stream) {
  const Sizes& sizes = r.common.sizes;
  if (tokens_of(sizes) == 0) return cudaSuccess;
  return launch_with_type(r.common.dtype, [&](auto type) {
    using T = TypeOf<decltype(type)>;
    const bool packed = packs<T>(r.common.streams, sizes) && starts_on(16, r.input) && starts_on(16, r.mixed) &&
                        starts_on(16, r.common.projections);
    return with_bounds<T>(sizes.H, packed, [&](auto bound, auto pack) {
      constexpr int kN = decltype(bound)::value, kP = decltype(pack)::value;
      const LaunchShape shape{grid(tokens_of(sizes)), threads_for_row(sizes.hd, kP), stream};
      return launch(read_kernel<T, kN, kP>, shape, r);
    });
  });
}

cudaError_t launch_read_backward(const HyperConnectionReadBackwardLaunch& r, cudaStream_t stream) {
  const Sizes& sizes = r.common.sizes;
  const SumOffsets offsets(sizes.H, sizes.hd, r.common.projections != nullptr);
  const TokenChunks chunks = chunks_of(tokens_of(sizes));
  const cudaError_t error = chunks.count() == 0 ? cudaSuccess : launch_with_type(r.common.dtype, [&](auto type) {
    using T = TypeOf<decltype(type)>;
    const bool packed = packs<T>(r.common.streams, sizes) && packs<T>(r.grad_input, sizes) &&
                        packs<T>(r.grad_mixed, sizes) && starts_on(16, r.grad_streams) &&
                        starts_on(16, r.common.projections);
    return with_bounds<T>(sizes.H, packed, [&](auto bound, auto pack) {
      constexpr int kN = decltype(bound)::value, kP = decltype(pack)::value;
      const auto kernel = read_backward_kernel<T, kN, kP>;
      const size_t shared = static_cast<size_t>(offsets.logits) * sizeof(float);
      if (shared > 0) {
        const cudaError_t refused =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
        if (refused != cudaSuccess) return refused;
      }
      const LaunchShape shape{grid(chunks.count()), threads_for_row(sizes.hd, kP), stream, shared};
      return launch(kernel, shape, r, chunks);
    });
  });
  if (error != cudaSuccess) return error;
  const LaunchShape shape{grid((offsets.all + kMaxTokenThreads - 1) / kMaxTokenThreads), kMaxTokenThreads, stream};
  return launch(sum_chunks_kernel, shape, r.sums, static_cast<const float*>(r.partials), chunks.count(), offsets.all,
                offsets.all);
}

cudaError_t launch_write(const HyperConnectionWriteLaunch& w, cudaStream_t stream) {
  if (tokens_of(w.sizes) * w.sizes.hd == 0) return cudaSuccess;
  return launch_with_type(w.dtype, [&](auto type) {
    using T = TypeOf<decltype(type)>;
    const bool packed =
        packs<T>(w.result, w.result_strides, w.sizes) && packs<T>(w.mixed, w.sizes) && packs<T>(w.out, w.sizes);
    constexpr int kPack = Pack<T>::kSize;
    const LaunchShape shape{grid(tokens_of(w.sizes)), threads_for_row(w.sizes.hd, packed ? kPack : 1), stream};
    return packed ? launch(write_kernel<T, kPack>, shape, w) : launch(write_kernel<T, 1>, shape, w);
  });
}

cudaError_t launch_write_backward(const HyperConnectionWriteBackwardLaunch& w, cudaStream_t stream) {
  if (tokens_of(w.sizes) == 0) return cudaSuccess;
  return launch_with_type(w.dtype, [&](auto type) {
    using T = TypeOf<decltype(type)>;
    const bool packed = packs<T>(w.grad, w.sizes) && packs<T>(w.out, w.sizes) && starts_on(16, w.grad_out);
    return with_bounds<T>(w.sizes.H, packed, [&](auto bound, auto pack) {
      constexpr int kN = decltype(bound)::value, kP = decltype(pack)::value;
      const LaunchShape shape{grid(tokens_of(w.sizes)), threads_for_row(w.sizes.hd, kP), stream};
      return launch(write_backward_kernel<T, kN, kP>, shape, w);
    });
  });
}

}  // namespace satformer::ops::cuda
