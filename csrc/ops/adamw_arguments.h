#pragma once
// Checks of adamw_, shared by every dispatch key, and what kernels compute with.
#include <ATen/core/Tensor.h>

#include <vector>

#include "csrc/ops/adamw.h"

namespace satformer::ops {

// The operator's arguments; refers to the caller's lists.
struct AdamWArguments {
  at::TensorList parameters, gradients, exp_avgs, exp_avg_sqs;
  const at::Tensor& gradient_factor;
  AdamWSettings settings;
  at::IntArrayRef steps;
};

// All that can be checked without values.
void check_adamw(const AdamWArguments& arguments);
// Every tensor that is written has memory of its own. Needs tensors with memory.
void check_memory(const AdamWArguments& arguments);

// What depends on a parameter's step.
struct AdamWCorrection {
  double step_size;     // lr / (1 - beta1^t)
  double inverse_root;  // 1 / sqrt(1 - beta2^t)
};
// One a parameter.
std::vector<AdamWCorrection> corrections(const AdamWSettings& settings, at::IntArrayRef steps);

}  // namespace satformer::ops
