#include "satformer/fused/recompute.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "satformer/fused/autograd_record.h"
#include "satformer/fused/shared_gradient.h"

namespace satformer::fused {
namespace {

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

variable_list only_defined(const variable_list& tensors) {
  variable_list result;
  for (const at::Tensor& x : tensors) {
    if (x.defined()) result.push_back(x);
  }
  return result;
}

// `defined` with the undefined ones between them.
variable_list with_absent(const variable_list& defined, const std::vector<bool>& presence) {
  variable_list all;
  auto next = defined.begin();
  for (const bool one : presence) all.push_back(one ? *next++ : at::Tensor());
  return all;
}

std::vector<bool> presence_in(const variable_list& tensors) {
  std::vector<bool> result;
  for (const at::Tensor& x : tensors) result.push_back(x.defined());
  return result;
}

struct SegmentRecord : torch::CustomClassHolder {
  SegmentRecord(Segment segment, std::vector<bool> inputs, std::size_t num_inputs, const AutocastState& autocast)
      : segment(std::move(segment)), inputs(std::move(inputs)), num_inputs(num_inputs), autocast(autocast) {}

  // The outputs, undefined ones included.
  variable_list run(const variable_list& defined_inputs) const {
    const AutocastScope scope(autocast);
    return segment(with_absent(defined_inputs, inputs));
  }

  Segment segment;
  std::vector<bool> inputs, outputs;  // which of them are there; outputs: known after the first run
  std::size_t num_inputs;             // that are there
  AutocastState autocast;
};

variable_list detached_inputs(const variable_list& saved, std::size_t num_inputs) {
  variable_list inputs;
  inputs.reserve(num_inputs);
  for (std::size_t i = 0; i < num_inputs; ++i) {
    inputs.push_back(fan_out_copy(saved[i].detach().requires_grad_(saved[i].requires_grad()), saved[i]));
  }
  return inputs;
}

struct Recompute : torch::autograd::Function<Recompute> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<SegmentRecord>& record,
                               at::TensorList tensors) {
    keep_record(*context, record);
    context->save_for_backward(tensors.vec());
    context->set_materialize_grads(false);
    const variable_list outputs = record->run(tensors.slice(0, record->num_inputs).vec());
    record->outputs = presence_in(outputs);
    return only_defined(outputs);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivatives("activation recomputation");
    const auto& record = kept_record<SegmentRecord>(*context);
    const variable_list saved = context->get_saved_variables();

    const at::AutoGradMode grad_mode(true);
    variable_list sources = detached_inputs(saved, record.num_inputs);
    const variable_list outputs = only_defined(record.run(sources));
    sources.insert(sources.end(), saved.begin() + static_cast<std::ptrdiff_t>(record.num_inputs), saved.end());
    variable_list result = source_gradients(outputs, gradients, sources);
    result.insert(result.begin(), at::Tensor());  // the record is no tensor
    return result;
  }

 private:
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

std::vector<at::Tensor> recompute(const Segment& segment, const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters) {
  require(!inputs.empty(), "activation recomputation: expected at least one input, got none");
  if (!at::GradMode::is_enabled()) return segment(inputs);
  variable_list tensors = only_defined(inputs);
  const auto record = c10::make_intrusive<SegmentRecord>(segment, presence_in(inputs), tensors.size(),
                                                         AutocastState::current(inputs.front().device().type()));
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  const variable_list outputs = Recompute::apply(record, at::TensorList(tensors));
  return with_absent(outputs, record->outputs);
}

}  // namespace satformer::fused
