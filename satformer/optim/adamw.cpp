#include "satformer/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "csrc/ops/adamw.h"
#include "satformer/core/error.h"
#include "satformer/runtime/load_tensors.h"

namespace satformer::optim {
namespace {

constexpr const char *kStepPrefix = "step.", *kMeanPrefix = "exp_avg.", *kSquarePrefix = "exp_avg_sq.";

// Those of the wrong shape or dtype are left to require_same_tensors.
void require_counts(const std::map<std::string, at::Tensor>& state, const std::string& source) {
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with(kStepPrefix) || tensor.dim() != 0 || tensor.scalar_type() != at::kFloat) continue;
    const auto step = tensor.item<float>();
    require(step >= 0 && step < 0x1p63F && std::floor(step) == step, "{}: {} is {}, expected a number of steps", source,
            name, step);
  }
}

}  // namespace

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options, std::optional<Range> owned)
    : groups_(std::move(groups)), options_(options) {
  const at::NoGradGuard no_grad;
  for (const ParameterGroup& group : groups_) num_elements_ += group.num_elements();
  owned_ = owned.value_or(Range{0, num_elements_});
  require(owned_.begin >= 0 && owned_.begin <= owned_.end && owned_.end <= num_elements_,
          "AdamW: elements {} to {} are not among the parameters' {}", owned_.begin, owned_.end, num_elements_);
  std::set<std::string> names;
  std::int64_t begin = 0;  // of the parameter in the sequence
  for (const ParameterGroup& group : groups_) {
    std::vector<Slot>& slots = slots_.emplace_back();
    for (const NamedParameter& parameter : group.parameters) {
      const at::Tensor& tensor = parameter.tensor;
      require(names.insert(parameter.name).second, "AdamW: two parameters are named {}", parameter.name);
      require(tensor.is_floating_point(), "AdamW: {} is {}, expected a floating-point parameter", parameter.name,
              c10::toString(tensor.scalar_type()));
      Slot slot;
      slot.part = {std::clamp<std::int64_t>(owned_.begin - begin, 0, tensor.numel()),
                   std::clamp<std::int64_t>(owned_.end - begin, 0, tensor.numel())};
      slot.exp_avg = at::zeros_like(owned_part(slot, tensor));
      slot.exp_avg_sq = at::zeros_like(slot.exp_avg);
      slots.push_back(std::move(slot));
      begin += tensor.numel();
    }
  }
}

// The tensor itself, or of its elements those that the slot's moments belong to.
at::Tensor AdamW::owned_part(const Slot& slot, const at::Tensor& tensor) {
  if (slot.part.size() == tensor.numel()) return tensor;
  return tensor.view(-1).slice(0, slot.part.begin, slot.part.end);
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
      slots.push_back(&slot);
      if (slot.part.size() == 0 && parameter.numel() > 0) continue;
      tensors.parameters.push_back(owned_part(slot, parameter));
      tensors.gradients.push_back(owned_part(slot, parameter.grad()));
      tensors.exp_avgs.push_back(slot.exp_avg);
      tensors.exp_avg_sqs.push_back(slot.exp_avg_sq);
      steps.push_back(slot.step + 1);
    }
    if (!steps.empty()) {
      tensors.gradient_factor = at::full({}, gradient_factor, tensors.parameters.front().options().dtype(at::kDouble));
      ops::adamw_(tensors,
                  {.lr = learning_rate,
                   .beta1 = options_.beta1,
                   .beta2 = options_.beta2,
                   .eps = options_.eps,
                   .weight_decay = groups_[g].weight_decay},
                  steps);
    }
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

// Calls function(parameter, its slot) in the groups' order.
template <typename Function>
void AdamW::for_each_slot(const Function& function) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < slots_[g].size(); ++i) function(groups_[g].parameters[i], slots_[g][i]);
  }
}

std::map<std::string, at::Tensor> AdamW::state() const {
  require(owned_ == Range{0, num_elements_}, "AdamW: the state of elements {} to {} alone is held here", owned_.begin,
          owned_.end);
  std::map<std::string, at::Tensor> state = steps();
  for_each_slot([&](const NamedParameter& parameter, const Slot& slot) {
    state.emplace(kMeanPrefix + parameter.name, slot.exp_avg);
    state.emplace(kSquarePrefix + parameter.name, slot.exp_avg_sq);
  });
  return state;
}

std::map<std::string, at::Tensor> AdamW::steps() const {
  std::map<std::string, at::Tensor> steps;
  for_each_slot([&](const NamedParameter& parameter, const Slot& slot) {
    steps.emplace(kStepPrefix + parameter.name,
                  at::full({}, static_cast<double>(slot.step), slot.exp_avg.options().dtype(at::kFloat)));
  });
  return steps;
}

std::vector<at::Tensor> AdamW::exp_avgs() const {
  std::vector<at::Tensor> tensors;
  for_each_slot([&](const NamedParameter&, const Slot& slot) { tensors.push_back(slot.exp_avg); });
  return tensors;
}

std::vector<at::Tensor> AdamW::exp_avg_sqs() const {
  std::vector<at::Tensor> tensors;
  for_each_slot([&](const NamedParameter&, const Slot& slot) { tensors.push_back(slot.exp_avg_sq); });
  return tensors;
}

std::vector<at::Tensor> AdamW::parameters() const {
  std::vector<at::Tensor> tensors;
  for_each_slot([&](const NamedParameter& parameter, const Slot&) { tensors.push_back(parameter.tensor); });
  return tensors;
}

void AdamW::load_state(const std::map<std::string, at::Tensor>& loaded, const std::string& source) {
  require_counts(loaded, source);
  // What a whole state would be, without memory; then the parts of it that are held here.
  std::map<std::string, at::Tensor> whole = steps(), held, parts;
  for_each_slot([&](const NamedParameter& parameter, const Slot& slot) {
    for (const std::string& name : {kMeanPrefix + parameter.name, kSquarePrefix + parameter.name}) {
      whole.emplace(name, at::empty_like(parameter.tensor, parameter.tensor.options().device(at::kMeta)));
      held.emplace(name, name.starts_with(kSquarePrefix) ? slot.exp_avg_sq : slot.exp_avg);
    }
  });
  require_same_tensors(whole, loaded, source);
  for_each_slot([&](const NamedParameter& parameter, const Slot& slot) {
    for (const std::string& name : {kMeanPrefix + parameter.name, kSquarePrefix + parameter.name}) {
      parts.emplace(name, owned_part(slot, loaded.at(name)));
    }
  });
  copy_tensors(held, parts, source);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < slots_[g].size(); ++i) {
      const at::Tensor& step = loaded.at(kStepPrefix + groups_[g].parameters[i].name);
      slots_[g][i].step = static_cast<std::int64_t>(step.item<float>());
    }
  }
}

}  // namespace satformer::optim
