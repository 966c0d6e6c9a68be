#pragma once
// AdamW with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101) over lists of tensors, taken as one flat
// buffer: every number of parameters, gradients and state is read once, and of parameters and state written once. With
// g = gradient_factor * gradients[i] and t = steps[i], the number of this update, from 1:
//
//   p = parameters[i] * (1 - lr * weight_decay)
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
//   p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//
//   parameters             any sizes, also [] and empty; float32, bfloat16, float16 or float64, each its own; dense
//   gradients              the parameters' sizes and strides, any of these dtypes; only read
//   exp_avgs, exp_avg_sqs  m and v, 0 before the first update: the parameters' sizes and strides; the parameter's
//                          dtype, or float32 beside a bfloat16 or float16 parameter
//   gradient_factor        [], float32 or float64, on the parameters' device: clipping and averaging cost no pass, and
//                          the factor need not come to the host
//   steps                  one a parameter, at least 1
//
// "Dense": numel() numbers in one stretch of memory, in any order of the dimensions. Arithmetic in float32 (float64 for
// float64 parameters), 1 - beta^t in float64; p is computed from m and v before these are rounded to their dtype. The
// number of threads changes no bit.
//
// Not differentiable: parameters that require grad are updated under no_grad. No tensor that is written may share
// memory with any other. A wrong argument is a c10::Error that names operator, argument, list index and what it got;
// nothing is written then.
#include <ATen/core/Tensor.h>

#include <tuple>
#include <vector>

namespace satformer::ops {

struct AdamWTensors {
  std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;
  at::Tensor gradient_factor;

  static constexpr auto fields() {  // in the order of the schema (csrc/ops/tensor_fields.h)
    using In = AdamWTensors;
    return std::tuple{&In::parameters, &In::gradients, &In::exp_avgs, &In::exp_avg_sqs, &In::gradient_factor};
  }
};

struct AdamWSettings {
  double lr = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.0;

  static constexpr auto fields() {
    using In = AdamWSettings;
    return std::tuple{&In::lr, &In::beta1, &In::beta2, &In::eps, &In::weight_decay};
  }
};

void adamw_(const AdamWTensors& tensors, const AdamWSettings& settings, at::IntArrayRef steps);

}  // namespace satformer::ops
