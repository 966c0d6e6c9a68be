#include "csrc/ops/adamw_reference.h"
#include "csrc/ops/row_arguments.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sub.h>

#include <cmath>

namespace satformer::ops {

void adamw_reference_(const AdamWTensors& tensors, const AdamWSettings& settings, at::IntArrayRef steps) {
  const at::NoGradGuard no_grad;
  const auto [lr, beta1, beta2, eps, weight_decay] = settings;
  for (std::size_t i = 0; i < tensors.parameters.size(); ++i) {
    const at::Tensor& parameter = tensors.parameters[i];
    const at::ScalarType dtype = accumulate_dtype(parameter);
    const auto t = static_cast<double>(steps[i]);
    const at::Tensor g = tensors.gradients[i].to(dtype) * tensors.gradient_factor.to(dtype);
    const at::Tensor m = beta1 * tensors.exp_avgs[i].to(dtype) + (1 - beta1) * g;
    const at::Tensor v = beta2 * tensors.exp_avg_sqs[i].to(dtype) + (1 - beta2) * g * g;
    const at::Tensor denominator = at::sqrt(v) / std::sqrt(1 - std::pow(beta2, t)) + eps;
    const at::Tensor decayed = parameter.to(dtype) * (1 - lr * weight_decay);
    parameter.copy_(decayed - lr / (1 - std::pow(beta1, t)) * m / denominator);
    tensors.exp_avgs[i].copy_(m);
    tensors.exp_avg_sqs[i].copy_(v);
  }
}

}  // namespace satformer::ops
