#pragma once
// The gradient of one step on this rank, summed over micro-batches.
#include <cstdint>
#include <functional>

#include "satformer/data/batch.h"
#include "satformer/eval/loss_total.h"
#include "satformer/train/forward_backward.h"

namespace satformer::train {

struct TrainingData {
  data::TokenDataset dataset;
  data::WindowSampler sampler;
  data::BatchOptions batch;
};

struct SampleRange {
  std::int64_t first = 0, count = 0;
};

// Adds the gradient of the summed (not averaged) loss over the samples to every parameter's .grad(), `micro_batch_size`
// samples at a time. Dividing by num_targets afterwards gives the gradient of the token-weighted mean, however the
// samples were cut. Waits for the device once, at the end. `before_last` is called before the last micro-batch, where
// there is one.
eval::LossTotal accumulate_gradients(ForwardBackward& forward_backward, const TrainingData& data,
                                     const SampleRange& samples, std::int64_t micro_batch_size,
                                     const std::function<void()>& before_last = {});

}  // namespace satformer::train
