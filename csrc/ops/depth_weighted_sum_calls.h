#pragma once
// The operators as the dispatcher knows them: C++ signatures of the schemas in depth_weighted_sum.cpp and typed handles
// to call or redispatch them. For csrc alone; callers outside use depth_weighted_sum.h.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <tuple>
#include <vector>

#include "csrc/ops/depth_weighted_sum.h"

namespace satformer::ops {

using Tensors = std::vector<at::Tensor>;
// The fields of DepthSumGradients.
using DepthGradientTuple = std::tuple<Tensors, at::Tensor, at::Tensor, Tensors, Tensors, Tensors>;

using DepthSumSignature = Tensors(at::TensorList sources, const at::Tensor& weights,
                                  const std::optional<at::Tensor>& base, at::TensorList source_norm_weights,
                                  at::TensorList source_inverse_rms, at::TensorList output_norm_weights,
                                  double output_norm_eps);
using DepthSumBackwardSignature = DepthGradientTuple(at::TensorList grads, at::TensorList sources,
                                                     const at::Tensor& weights, const std::optional<at::Tensor>& base,
                                                     at::TensorList source_norm_weights,
                                                     at::TensorList source_inverse_rms,
                                                     at::TensorList output_norm_weights, double output_norm_eps,
                                                     DepthSumMask output_mask);
using DepthSumBackwardAddSignature = DepthGradientTuple(
    at::TensorList grad_sources, at::TensorList grads, at::TensorList sources, const at::Tensor& weights,
    const std::optional<at::Tensor>& base, at::TensorList source_norm_weights, at::TensorList source_inverse_rms,
    at::TensorList output_norm_weights, double output_norm_eps, DepthSumMask output_mask);
using InverseRmsSignature = at::Tensor(const at::Tensor& x, double eps);
using InverseRmsBackwardSignature = at::Tensor(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse);

const c10::TypedOperatorHandle<DepthSumSignature>& depth_sum_operator();
const c10::TypedOperatorHandle<DepthSumBackwardSignature>& depth_sum_backward_operator();
const c10::TypedOperatorHandle<DepthSumBackwardAddSignature>& depth_sum_backward_add_operator();
const c10::TypedOperatorHandle<InverseRmsSignature>& inverse_rms_operator();
const c10::TypedOperatorHandle<InverseRmsBackwardSignature>& inverse_rms_backward_operator();

}  // namespace satformer::ops
