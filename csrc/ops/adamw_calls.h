#pragma once
// adamw_ as the dispatcher knows it: the C++ signature of the schema in adamw.cpp and a typed handle to call or
// redispatch it. For csrc alone; callers outside use adamw.h.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace satformer::ops {

using AdamWSignature = void(at::TensorList parameters, at::TensorList gradients, at::TensorList exp_avgs,
                            at::TensorList exp_avg_sqs, const at::Tensor& gradient_factor, double lr, double beta1,
                            double beta2, double eps, double weight_decay, at::IntArrayRef steps);

const c10::TypedOperatorHandle<AdamWSignature>& adamw_operator();

}  // namespace satformer::ops
