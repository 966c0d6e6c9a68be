#pragma once
// Batches of token windows as tensors.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "satformer/data/batch_options.h"
#include "satformer/data/sampler.h"
#include "satformer/data/token_dataset.h"

namespace satformer::data {

struct Batch {
  at::Tensor input_ids;     // int64 [B, T], CPU
  at::Tensor targets;       // int64 [B, T]; -100 where there is nothing to predict
  at::Tensor document_ids;  // int64 [B, T]; undefined without document_mask
  at::Tensor positions;     // int64 [B, T], from 0 in every document; undefined without document_mask
};

// Training: samples [first_sample, first_sample + count) in the sampler's order.
Batch training_batch(const TokenDataset& dataset, const WindowSampler& sampler, std::int64_t first_sample,
                     std::int64_t count, const BatchOptions& options);

// Evaluation: windows [first_window, first_window + count) of consecutive seq_length inputs from the split's start;
// window w predicts tokens w * T + 1 .. (w + 1) * T, so every token but the first is a target exactly once. The last
// window may be shorter: it is padded with id 0 and target -100.
std::int64_t num_evaluation_windows(const TokenDataset& dataset, std::int64_t seq_length);
Batch evaluation_batch(const TokenDataset& dataset, std::int64_t first_window, std::int64_t count,
                       const BatchOptions& options);

}  // namespace satformer::data
