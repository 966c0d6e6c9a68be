#pragma once
// The operators as the dispatcher knows them: C++ signatures of the schemas in hyper_connection.cpp and typed handles
// to call or redispatch them. For csrc alone; callers outside use hyper_connection.h.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <tuple>

#include "csrc/ops/hyper_connection.h"

namespace satformer::ops {

using OptionalTensor = std::optional<at::Tensor>;
// The fields of HyperConnectionRead and of HyperConnectionGradients.
using ReadTuple = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using ReadGradientTuple = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor,
                                     at::Tensor, at::Tensor>;
using WriteGradientTuple = std::tuple<at::Tensor, at::Tensor>;

using ReadSignature = ReadTuple(const at::Tensor& streams, const at::Tensor& static_alpha,
                                const at::Tensor& static_beta, const OptionalTensor& norm_weight,
                                const OptionalTensor& norm_bias, const OptionalTensor& dynamic_alpha_proj,
                                const OptionalTensor& dynamic_beta_proj, const OptionalTensor& dynamic_alpha_scale,
                                const OptionalTensor& dynamic_beta_scale, double norm_eps, bool use_tanh);
using ReadBackwardSignature = ReadGradientTuple(
    const at::Tensor& grad_input, const at::Tensor& grad_mixed, const at::Tensor& grad_beta, const at::Tensor& streams,
    const at::Tensor& static_alpha, const at::Tensor& static_beta, const OptionalTensor& norm_weight,
    const OptionalTensor& norm_bias, const OptionalTensor& dynamic_alpha_proj, const OptionalTensor& dynamic_beta_proj,
    const OptionalTensor& dynamic_alpha_scale, const OptionalTensor& dynamic_beta_scale, double norm_eps, bool use_tanh,
    const at::Tensor& kept);
using WriteSignature = at::Tensor(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out);
using WriteInPlaceSignature = void(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out);
using WriteBackwardSignature = WriteGradientTuple(const at::Tensor& grad, const at::Tensor& beta,
                                                  const at::Tensor& out);

const c10::TypedOperatorHandle<ReadSignature>& hyper_read_operator();
const c10::TypedOperatorHandle<ReadBackwardSignature>& hyper_read_backward_operator();
const c10::TypedOperatorHandle<WriteSignature>& hyper_write_operator();
const c10::TypedOperatorHandle<WriteInPlaceSignature>& hyper_write_in_place_operator();
const c10::TypedOperatorHandle<WriteBackwardSignature>& hyper_write_backward_operator();

}  // namespace satformer::ops
