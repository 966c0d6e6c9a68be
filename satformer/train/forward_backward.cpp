#include "satformer/train/forward_backward.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "satformer/eval/model_input.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"

namespace satformer::train {

// Libraries choose their algorithms and memory in the first passes.
constexpr int kPassesBeforeRecording = 2;

ForwardBackward::ForwardBackward(models::LanguageModel& model, c10::Device device, c10::ScalarType dtype,
                                 bool cuda_graph)
    : model_(model),
      device_(device),
      dtype_(dtype),
      cuda_graph_(cuda_graph),
      loss_sum_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))) {}

std::int64_t ForwardBackward::run(const data::Batch& batch) {
  if (cuda_graph_ && !graph_) record_if_due(batch);
  if (graph_ && can_replay(batch)) {
    input_ids_.copy_(to_device(batch.input_ids, device_));
    targets_.copy_(to_device(batch.targets, device_));
    graph_->run();
  } else {
    forward_and_backward(eval::model_input(batch, device_), to_device(batch.targets, device_));
    if (cuda_graph_ && !graph_) note_gradients();
  }
  return models::count_targets(batch.targets);
}

void ForwardBackward::forward_and_backward(const models::ModelInput& input, const at::Tensor& targets) {
  at::Tensor loss;
  {
    const AutocastGuard autocast(device_, dtype_);
    loss = model_.loss_sum(input, targets);
  }
  loss.backward();
  loss_sum_ += loss.detach();
}

void ForwardBackward::note_gradients() {
  with_gradient_.clear();
  for (const at::Tensor& parameter : model_.parameters()) {
    if (parameter.grad().defined()) with_gradient_.push_back(parameter);
  }
}

void ForwardBackward::record_if_due(const data::Batch& batch) {
  const auto shape = batch.input_ids.sizes().vec();
  same_shape_ = shape == shape_ ? same_shape_ + 1 : 0;
  shape_ = shape;
  if (same_shape_ >= kPassesBeforeRecording && !batch.document_ids.defined()) record(batch);
}

void ForwardBackward::record(const data::Batch& batch) {
  for (const at::Tensor& parameter : with_gradient_) {
    if (!parameter.grad().defined()) {
      parameter.mutable_grad() = at::zeros_like(parameter, parameter.options().requires_grad(false));
    }
  }
  input_ids_ = at::empty_like(batch.input_ids, batch.input_ids.options().device(device_));
  targets_ = at::empty_like(batch.targets, batch.targets.options().device(device_));
  input_ids_.zero_();
  targets_.zero_();
  graph_ = std::make_unique<CudaGraph>(device_, [this] { forward_and_backward({.input_ids = input_ids_}, targets_); });
}

bool ForwardBackward::can_replay(const data::Batch& batch) const {
  return batch.input_ids.sizes() == input_ids_.sizes() && !batch.document_ids.defined();
}

}  // namespace satformer::train
