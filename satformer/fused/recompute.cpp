#include "satformer/fused/recompute.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "satformer/core/error.h"
#include "satformer/fused/shared_gradient.h"

namespace satformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AutocastState {
  at::DeviceType device;
  bool enabled;
  at::ScalarType dtype;

  static AutocastState current(at::DeviceType device) {
    return {device, at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
  }
  void apply() const {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype);
  }
};

// Runs under a given autocast state without the cache of cast parameters: what the first run casts has no gradient,
// and the second run must not find it there.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state)
      : previous_(AutocastState::current(state.device)), cached_(at::autocast::is_autocast_cache_enabled()) {
    state.apply();
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastScope() {
    at::autocast::set_autocast_cache_enabled(cached_);
    previous_.apply();
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState previous_;
  bool cached_;
};

// What the backward needs besides tensors; a custom class, because that is what an AutogradContext can hold.
struct SegmentRecord : torch::CustomClassHolder {
  SegmentRecord(Segment function, std::size_t num_inputs, const AutocastState& autocast)
      : function(std::move(function)), num_inputs(num_inputs), autocast(autocast) {}
  Segment function;
  std::size_t num_inputs;
  AutocastState autocast;
};

std::vector<at::Tensor> detached_inputs(const variable_list& saved, std::size_t num_inputs) {
  std::vector<at::Tensor> inputs;
  inputs.reserve(num_inputs);
  for (std::size_t i = 0; i < num_inputs; ++i) {
    inputs.push_back(fan_out_copy(saved[i].detach().requires_grad_(saved[i].requires_grad()), saved[i]));
  }
  return inputs;
}

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<SegmentRecord>& record,
                               at::TensorList tensors) {
    context->saved_data["record"] = c10::IValue::make_capsule(record);
    context->save_for_backward(tensors.vec());
    context->set_materialize_grads(false);
    const AutocastScope autocast(record->autocast);
    return record->function(tensors.slice(0, record->num_inputs).vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require(!at::GradMode::is_enabled(), "activation checkpointing: second derivatives are not implemented");
    const auto capsule = context->saved_data["record"].toCapsule();
    const auto& record = static_cast<const SegmentRecord&>(*capsule);
    const variable_list saved = context->get_saved_variables();

    const at::AutoGradMode grad_mode(true);
    std::vector<at::Tensor> sources = detached_inputs(saved, record.num_inputs);
    const std::vector<at::Tensor> outputs = run_again(record, sources);
    sources.insert(sources.end(), saved.begin() + static_cast<std::ptrdiff_t>(record.num_inputs), saved.end());
    variable_list result = source_gradients(outputs, gradients, sources);
    result.insert(result.begin(), at::Tensor());  // the record is no tensor
    return result;
  }

 private:
  static std::vector<at::Tensor> run_again(const SegmentRecord& record, const std::vector<at::Tensor>& inputs) {
    const AutocastScope autocast(record.autocast);
    return record.function(inputs);
  }

  // One entry a source, undefined where it needs or has no gradient.
  static variable_list source_gradients(const variable_list& outputs, const variable_list& output_gradients,
                                        const variable_list& sources) {
    variable_list roots, root_gradients, wanted;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!output_gradients[i].defined() || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      root_gradients.push_back(output_gradients[i]);
    }
    for (const at::Tensor& source : sources) {
      if (source.requires_grad()) wanted.push_back(source);
    }
    const variable_list found = torch::autograd::grad(roots, wanted, root_gradients, /*retain_graph=*/false,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    variable_list result;
    auto next = found.begin();
    for (const at::Tensor& source : sources) result.push_back(source.requires_grad() ? *next++ : at::Tensor());
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> checkpoint(const Segment& segment, const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& parameters) {
  require(!inputs.empty(), "activation checkpointing: a segment needs at least one input");
  if (!at::GradMode::is_enabled()) return segment(inputs);
  // An autograd function takes no undefined tensors: what is absent stays in the segment.
  std::vector<at::Tensor> tensors;
  std::vector<bool> present;
  for (const at::Tensor& input : inputs) {
    present.push_back(input.defined());
    if (input.defined()) tensors.push_back(input);
  }
  const std::size_t num_inputs = tensors.size();
  const Segment with_absent = [segment, present](const std::vector<at::Tensor>& defined) {
    std::vector<at::Tensor> all;
    auto next = defined.begin();
    for (const bool one : present) all.push_back(one ? *next++ : at::Tensor());
    return segment(all);
  };
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  const auto autocast = AutocastState::current(inputs.front().device().type());
  const auto record = c10::make_intrusive<SegmentRecord>(with_absent, num_inputs, autocast);
  return CheckpointFunction::apply(record, at::TensorList(tensors));
}

}  // namespace satformer::nn
