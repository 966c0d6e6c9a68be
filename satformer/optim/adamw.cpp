#include "satformer/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <set>

#include "satformer/core/error.h"
#include "satformer/optim/load_tensors.h"

namespace satformer::optim {

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options)
    : groups_(std::move(groups)), options_(options) {
  const at::NoGradGuard no_grad;
  std::set<std::string> names;
  for (const ParameterGroup& group : groups_) {
    std::vector<Slot>& slots = slots_.emplace_back();
    for (const NamedParameter& parameter : group.parameters) {
      require(names.insert(parameter.name).second, "AdamW: two parameters are named {}", parameter.name);
      require(parameter.tensor.is_floating_point(), "AdamW: {} is {}, expected a floating-point parameter",
              parameter.name, c10::toString(parameter.tensor.scalar_type()));
      slots.push_back({at::zeros_like(parameter.tensor), at::zeros_like(parameter.tensor),
                       at::zeros({}, parameter.tensor.options().dtype(at::kFloat))});
    }
  }
}

void AdamW::step(double learning_rate, double gradient_factor) {
  const at::NoGradGuard no_grad;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs, steps;
    for (std::size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      const at::Tensor& parameter = groups_[g].parameters[i].tensor;
      if (!parameter.grad().defined()) continue;
      parameters.push_back(parameter);
      gradients.push_back(parameter.grad());
      exp_avgs.push_back(slots_[g][i].exp_avg);
      exp_avg_sqs.push_back(slots_[g][i].exp_avg_sq);
      steps.push_back(slots_[g][i].step);
    }
    if (parameters.empty()) continue;
    at::_foreach_add_(steps, 1);
    // The kernel divides by the scale while it reads the gradients: no pass of its own.
    std::optional<at::Tensor> scale;
    if (gradient_factor != 1.0) scale = at::full({}, 1.0 / gradient_factor, steps.front().options());
    at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps, learning_rate,
                      options_.beta1, options_.beta2, groups_[g].weight_decay, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false, scale);
  }
}

void AdamW::zero_grad() {
  for (const ParameterGroup& group : groups_) {
    for (const NamedParameter& parameter : group.parameters) parameter.tensor.mutable_grad().reset();
  }
}

std::vector<at::Tensor> AdamW::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const ParameterGroup& group : groups_) {
    for (const NamedParameter& parameter : group.parameters) {
      if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
    }
  }
  return gradients;
}

std::map<std::string, at::Tensor> AdamW::state() const {
  std::map<std::string, at::Tensor> state;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < slots_[g].size(); ++i) {
      const std::string& name = groups_[g].parameters[i].name;
      state.emplace("exp_avg." + name, slots_[g][i].exp_avg);
      state.emplace("exp_avg_sq." + name, slots_[g][i].exp_avg_sq);
      state.emplace("step." + name, slots_[g][i].step);
    }
  }
  return state;
}

void AdamW::load_state(const std::map<std::string, at::Tensor>& loaded, const std::string& source) {
  copy_tensors(state(), loaded, source);
}

}  // namespace satformer::optim
