#pragma once
// The CPU kernels' entry points; causal_attention_kernel.cpp is compiled once for each CPU capability. Every tensor is
// contiguous in its last dimension.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

namespace satformer::ops {

struct CausalAttentionTensors {
  at::Tensor q;          // [B, T, H, hd]
  at::Tensor k, v;       // [B, T, H_kv, hd]
  at::Tensor out;        // [B, T, H, hd]
  at::Tensor logsumexp;  // [B, H, T], contiguous
};

// Writes out and logsumexp.
using CausalAttentionKernel = void (*)(const CausalAttentionTensors& tensors);
// Writes the gradients of q, k and v, all [B, T, H, hd]: those of k and v for each query head that reads them.
using CausalAttentionBackwardKernel = void (*)(const at::Tensor& grad, const CausalAttentionTensors& tensors,
                                               const at::Tensor& grad_q, const at::Tensor& grad_k,
                                               const at::Tensor& grad_v);

}  // namespace satformer::ops

namespace at::native {
DECLARE_DISPATCH(satformer::ops::CausalAttentionKernel, satformer_causal_attention_stub)
DECLARE_DISPATCH(satformer::ops::CausalAttentionBackwardKernel, satformer_causal_attention_backward_stub)
}  // namespace at::native
