#pragma once
// The CPU kernels' entry points and the form in which they take checked arguments: raw pointers. `acc` is float32, or
// float64 where the sources are. depth_weighted_sum_kernel.cpp is compiled once for each CPU capability; ATen's
// DispatchStub picks one at run time.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

namespace satformer::ops {

// [B, T, d] of the sources' dtype, contiguous in d; data null: absent.
template <typename pointer_t>
struct TokenRows {
  pointer_t data = nullptr;
  std::int64_t stride_b = 0, stride_t = 0;
};
using ReadRows = TokenRows<const void*>;
using WriteRows = TokenRows<void*>;

struct DepthSumData {
  std::int64_t B, T, d, sources, ways;
  at::ScalarType dtype;
  const ReadRows* source;  // [sources]
  ReadRows base;
  const void* weights;                     // acc [B * T, ways, sources], or [ways, sources]
  bool weights_per_token;                  //
  const void* const* norm_weights;         // acc [d] for each source; null: no source norm
  const void* const* inverse_rms;          // acc [B * T] for each source
  const void* const* output_norm_weights;  // acc [d] for each way; null: no norm of the sums
  double output_norm_eps;
};

// What the backward writes; null where not wanted.
struct DepthSumGradientData {
  const ReadRows* grads;      // [ways]
  const WriteRows* sources;   // for each source
  bool add_to_sources;        // else written
  void* weights;              // acc, the shape of the weights
  void* base;                 // [B, T, d], the sources' dtype
  void* norm_weights;         // acc [sources, d]
  void* inverse_rms;          // acc [sources, B * T]
  void* output_norm_weights;  // acc [ways, d]
};

// out: for each way [B, T, d], contiguous.
using DepthSumKernel = void (*)(const DepthSumData& data, void* const* out);
using DepthSumBackwardKernel = void (*)(const DepthSumData& data, const DepthSumGradientData& out);
// x [rows, d] with `stride` between rows; inverse acc [rows]. The backward: grad acc [rows], grad_x contiguous.
using InverseRmsKernel = void (*)(const at::Tensor& inverse, const at::Tensor& x, double eps);
using InverseRmsBackwardKernel = void (*)(const at::Tensor& grad_x, const at::Tensor& grad, const at::Tensor& x,
                                          const at::Tensor& inverse);

}  // namespace satformer::ops

// The macros specialise templates of this namespace.
namespace at::native {
DECLARE_DISPATCH(satformer::ops::DepthSumKernel, satformer_depth_weighted_sum_stub)
DECLARE_DISPATCH(satformer::ops::DepthSumBackwardKernel, satformer_depth_weighted_sum_backward_stub)
DECLARE_DISPATCH(satformer::ops::InverseRmsKernel, satformer_inverse_rms_stub)
DECLARE_DISPATCH(satformer::ops::InverseRmsBackwardKernel, satformer_inverse_rms_backward_stub)
}  // namespace at::native
