#pragma once
// Forward and backward of one micro-batch, as it comes or recorded.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "satformer/data/batch.h"
#include "satformer/models/language_model.h"
#include "satformer/runtime/cuda_graph.h"

namespace satformer::train {

// Adds the gradient of a micro-batch's summed loss to every parameter's .grad() and its loss to loss_sum().
class ForwardBackward {
 public:
  // recorded: from the third micro-batch of one shape on it is a CUDA graph on fixed memory (on the CPU, the same work
  // on fixed memory). The parameters' gradients are then memory that must stay: between steps they are set to 0, not
  // freed (keeps_gradients()). Batches of another shape, or with documents, run as they come.
  ForwardBackward(models::LanguageModel& model, c10::Device device, c10::ScalarType dtype, bool recorded);

  ForwardBackward(const ForwardBackward&) = delete;  // the recorded work refers to this object
  ForwardBackward& operator=(const ForwardBackward&) = delete;

  // The number of targets.
  std::int64_t run(const data::Batch& batch);

  at::Tensor& loss_sum() { return loss_sum_; }  // float64 [] on the device
  bool keeps_gradients() const { return work_ != nullptr; }

 private:
  void forward_and_backward(const models::ModelInput& input, const at::Tensor& targets);
  void note_gradients();
  void record(const data::Batch& batch);
  bool fits(const data::Batch& batch) const;

  models::LanguageModel& model_;
  c10::Device device_;
  c10::ScalarType dtype_;
  bool recorded_;
  int seen_ = 0;  // micro-batches of shape_ before this one, one after the other
  std::vector<std::int64_t> shape_;
  std::vector<at::Tensor> with_gradient_;      // the parameters that a pass gives one
  at::Tensor loss_sum_, input_ids_, targets_;  // the last two: what the recorded work reads
  std::unique_ptr<CudaGraph> work_;
};

}  // namespace satformer::train
