#pragma once
// Checks of adamw_, shared by every dispatch key, and what kernels compute with.
#include <ATen/core/Tensor.h>

#include <tuple>
#include <vector>

#include "csrc/ops/adamw.h"

namespace satformer::ops {

// The operator's arguments; refers to the caller's lists, which may be long.
struct AdamWArguments {
  at::TensorList parameters, gradients, exp_avgs, exp_avg_sqs;
  at::Tensor gradient_factor;
  AdamWSettings settings;
  at::IntArrayRef steps;

  static constexpr auto fields() {
    using In = AdamWArguments;
    return std::tuple{&In::parameters,      &In::gradients, &In::exp_avgs, &In::exp_avg_sqs,
                      &In::gradient_factor, &In::settings,  &In::steps};
  }
};

// All that can be checked without values.
void check_adamw(const AdamWArguments& arguments);
// Every tensor that is written has memory of its own. Needs tensors with memory.
void check_adamw_memory(const AdamWArguments& arguments);

// What depends on a parameter's step.
struct AdamWCorrection {
  double step_size;     // lr / (1 - beta1^t)
  double inverse_root;  // 1 / sqrt(1 - beta2^t)
};
// One a parameter.
std::vector<AdamWCorrection> adamw_corrections(const AdamWSettings& settings, at::IntArrayRef steps);

}  // namespace satformer::ops
