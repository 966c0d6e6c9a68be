#pragma once
// Forward and backward of one micro-batch: either operator by operator, or from the third micro-batch of one shape on
// as a CUDA graph that is replayed.
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

// run() computes the summed loss of a micro-batch, adds its gradient to every parameter's .grad() and the loss itself
// to loss_sum(). It waits for nothing: the sum stays on the device.
class ForwardBackward {
 public:
  // cuda_graph: the third micro-batch of one shape in a row is recorded, and later ones of that shape replay the graph
  // on the same memory (on the CPU, the same work is called again on the same memory). The parameters' gradients are
  // then memory that must stay: between steps they are set to 0, not freed (keeps_gradients()). Batches of another
  // shape, or with documents, run operator by operator.
  ForwardBackward(models::LanguageModel& model, c10::Device device, c10::ScalarType dtype, bool cuda_graph);

  ForwardBackward(const ForwardBackward&) = delete;  // the graph refers to this object
  ForwardBackward& operator=(const ForwardBackward&) = delete;

  // Returns the number of targets.
  std::int64_t run(const data::Batch& batch);

  at::Tensor& loss_sum() { return loss_sum_; }  // float64 [] on the device
  bool keeps_gradients() const { return graph_ != nullptr; }

 private:
  void forward_and_backward(const models::ModelInput& input, const at::Tensor& targets);
  void note_gradients();
  void record_if_due(const data::Batch& batch);
  void record(const data::Batch& batch);
  bool can_replay(const data::Batch& batch) const;

  models::LanguageModel& model_;
  c10::Device device_;
  c10::ScalarType dtype_;
  bool cuda_graph_;
  int same_shape_ = 0;  // micro-batches of shape_ before this one, in a row
  std::vector<std::int64_t> shape_;
  std::vector<at::Tensor> with_gradient_;      // the parameters that a pass gives one
  at::Tensor loss_sum_, input_ids_, targets_;  // the last two: what the graph reads
  std::unique_ptr<CudaGraph> graph_;
};

}  // namespace satformer::train
