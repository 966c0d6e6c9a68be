#pragma once
// The CPU kernels' entry points and the form in which they take checked arguments: raw pointers. `acc` is float32, or
// float64 where the streams are. hyper_connection_kernel.cpp is compiled once for each CPU capability; ATen's
// DispatchStub picks one at run time.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

namespace satformer::ops {

// [B, T, n, d] of `dtype`, contiguous in d; [B, T, d] with stride_n 0.
template <typename pointer_t>
struct StreamRows {
  pointer_t data;
  std::int64_t stride_b, stride_t, stride_n;
};
using ReadStreams = StreamRows<const void*>;
using WriteStreams = StreamRows<void*>;

struct HyperConnectionData {
  std::int64_t B, T, n, d;
  at::ScalarType dtype;
  ReadStreams streams;
  const void *static_alpha, *static_beta;  // acc [n, n+1], [n]
  const void* projections;               // acc [n+2, d]: the columns of the projections times norm_weight; null: static
  const void* projection_offsets;        // acc [n+2]: their products with norm_bias, 0 with RMSNorm
  const void* projection_means;          // acc [n+2]: means of the rows of `projections`
  const void *alpha_scale, *beta_scale;  // acc, one each
  double norm_eps;
  bool layer_norm, use_tanh;
};

struct HyperConnectionOutputs {  // contiguous
  void *input, *mixed;           // [B, T, d], [B, T, n, d], dtype
  void *beta, *kept;             // acc [B, T, n], [B, T, n, n+4]; kept is null with the static form
};

struct HyperConnectionBackwardData {
  ReadStreams grad_input, grad_mixed;
  const void *grad_beta, *kept;  // acc, contiguous
  void* grad_streams;            // [B, T, n, d], contiguous
  void* sums;                    // acc [hyper_connection_sums(n, d)], see ops/hyper_connection_checks.h
};

using HyperConnectionReadKernel = void (*)(const HyperConnectionData& data, const HyperConnectionOutputs& out);
using HyperConnectionReadBackwardKernel = void (*)(const HyperConnectionData& data,
                                                   const HyperConnectionBackwardData& backward);
// beta: acc [B, T, n], contiguous. result may be mixed.
using HyperConnectionWriteKernel = void (*)(const at::Tensor& result, const at::Tensor& mixed, const at::Tensor& beta,
                                            const at::Tensor& out);
using HyperConnectionWriteBackwardKernel = void (*)(const at::Tensor& grad_beta, const at::Tensor& grad_out,
                                                    const at::Tensor& grad, const at::Tensor& beta,
                                                    const at::Tensor& out);

}  // namespace satformer::ops

// The macros specialise templates of this namespace.
namespace at::native {
DECLARE_DISPATCH(satformer::ops::HyperConnectionReadKernel, satformer_hyper_connection_read_stub)
DECLARE_DISPATCH(satformer::ops::HyperConnectionReadBackwardKernel, satformer_hyper_connection_read_backward_stub)
DECLARE_DISPATCH(satformer::ops::HyperConnectionWriteKernel, satformer_hyper_connection_write_stub)
DECLARE_DISPATCH(satformer::ops::HyperConnectionWriteBackwardKernel, satformer_hyper_connection_write_backward_stub)
}  // namespace at::native
