#include "satformer/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <set>

#include "csrc/ops/adamw.h"
#include "satformer/core/error.h"
#include "satformer/optim/load_tensors.h"

namespace satformer::optim {
namespace {

constexpr std::string_view kStepPrefix = "step.";

// Those of the wrong shape or dtype are left to copy_tensors.
void require_counts(const std::map<std::string, at::Tensor>& state, const std::string& source) {
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with(kStepPrefix) || tensor.dim() != 0 || tensor.scalar_type() != at::kFloat) continue;
    const auto step = tensor.item<float>();
    require(step >= 0 && step < 0x1p63F && std::floor(step) == step, "{}: {} is {}, expected a number of steps", source,
            name, step);
  }
}

}  // namespace

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
      slots.push_back({at::zeros_like(parameter.tensor), at::zeros_like(parameter.tensor)});
    }
  }
}

void AdamW::step(double learning_rate, double gradient_factor) {
  const at::NoGradGuard no_grad;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    ops::AdamWTensors tensors;
    std::vector<Slot*> slots;
    std::vector<std::int64_t> steps;
    for (std::size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      const at::Tensor& parameter = groups_[g].parameters[i].tensor;
      if (!parameter.grad().defined()) continue;
      Slot& slot = slots_[g][i];
      tensors.parameters.push_back(parameter);
      tensors.gradients.push_back(parameter.grad());
      tensors.exp_avgs.push_back(slot.exp_avg);
      tensors.exp_avg_sqs.push_back(slot.exp_avg_sq);
      slots.push_back(&slot);
      steps.push_back(slot.step + 1);
    }
    if (slots.empty()) continue;
    tensors.gradient_factor = at::full({}, gradient_factor, tensors.parameters.front().options().dtype(at::kDouble));
    ops::adamw_(tensors,
                {.lr = learning_rate,
                 .beta1 = options_.beta1,
                 .beta2 = options_.beta2,
                 .eps = options_.eps,
                 .weight_decay = groups_[g].weight_decay},
                steps);
    for (Slot* slot : slots) ++slot->step;
  }
}

void AdamW::zero_grad(bool keeps_memory) {
  if (keeps_memory) {
    for (at::Tensor& gradient : gradients()) gradient.zero_();
    return;
  }
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
      state.emplace(std::string(kStepPrefix) + name, at::full({}, static_cast<double>(slots_[g][i].step),
                                                              slots_[g][i].exp_avg.options().dtype(at::kFloat)));
    }
  }
  return state;
}

void AdamW::load_state(const std::map<std::string, at::Tensor>& loaded, const std::string& source) {
  require_counts(loaded, source);
  copy_tensors(state(), loaded, source);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < slots_[g].size(); ++i) {
      const at::Tensor& step = loaded.at(std::string(kStepPrefix) + groups_[g].parameters[i].name);
      slots_[g][i].step = static_cast<std::int64_t>(step.item<float>());
    }
  }
}

}  // namespace satformer::optim
