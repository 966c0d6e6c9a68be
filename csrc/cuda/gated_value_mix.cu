// Launchers: choose the element type, the width of loads and the threads a row.
#include "csrc/cuda/dispatch.cuh"
#include "csrc/cuda/gated_value_mix_kernel.cuh"
#include "csrc/cuda/launch.cuh"

namespace satformer::ops::cuda {
namespace {

int64_t number_of_rows(const Sizes& sizes) { return sizes.B * sizes.T * sizes.H; }

template <typename T>
bool starts_on_16(const void* data, const Strides& strides, const Sizes& sizes) {
  return rows_start_on(16, data, sizeof(T), strides, sizes);
}

Strides contiguous_strides(const Sizes& sizes) { return {sizes.T * sizes.H * sizes.hd, sizes.H * sizes.hd, sizes.hd}; }

template <typename T>
cudaError_t mix(MixArguments a, cudaStream_t stream) {
  const bool packed = starts_on_16<T>(a.out, a.out_strides, a.sizes) && starts_on_16<T>(a.v, a.v_strides, a.sizes) &&
                      starts_on_16<T>(a.first_values, a.first_strides, a.sizes);
  a.lanes = lanes_for(a.sizes.hd, packed ? Pack<T>::kSize : 1);
  const LaunchShape shape{blocks_for(number_of_rows(a.sizes) * a.lanes), kThreads, stream};
  return packed ? launch(mix_kernel<T, true>, shape, a) : launch(mix_kernel<T, false>, shape, a);
}

template <typename T>
cudaError_t mix_backward(MixBackwardArguments a, cudaStream_t stream) {
  const bool packed = starts_on_16<T>(a.grad, a.grad_strides, a.sizes) &&
                      starts_on_16<T>(a.first_values, a.first_strides, a.sizes) &&
                      starts_on_16<T>(a.grad_first_values, contiguous_strides(a.sizes), a.sizes);
  a.lanes = lanes_for(a.sizes.hd, packed ? Pack<T>::kSize : 1);
  const LaunchShape shape{blocks_for(number_of_rows(a.sizes) * a.lanes), kThreads, stream};
  return packed ? launch(mix_backward_kernel<T, true>, shape, a) : launch(mix_backward_kernel<T, false>, shape, a);
}

}  // namespace

cudaError_t launch_mix(MixArguments a, cudaStream_t stream) {
  if (number_of_rows(a.sizes) * a.sizes.hd == 0) return cudaSuccess;
  return launch_with_type(a.dtype, [&](auto type) { return mix<TypeOf<decltype(type)>>(a, stream); });
}

cudaError_t launch_mix_backward(MixBackwardArguments a, cudaStream_t stream) {
  if (number_of_rows(a.sizes) == 0) return cudaSuccess;
  const cudaError_t error =
      launch_with_type(a.dtype, [&](auto type) { return mix_backward<TypeOf<decltype(type)>>(a, stream); });
  if (error != cudaSuccess || !a.grad_logits || !is_over_heads(a.gates.gate)) return error;
  const SoftmaxBackward b{a.sizes, a.gates.gate,  a.gates.logits,
                          a.dots,  a.grad_logits, {a.sizes.T * a.sizes.H, a.sizes.H, 1}};
  return launch(softmax_backward_kernel, {blocks_for(a.sizes.B * a.sizes.T * 32), kThreads, stream}, b);
}

}  // namespace satformer::ops::cuda
