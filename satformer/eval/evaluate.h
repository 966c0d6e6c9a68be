#pragma once
// The loss of a model over a split of a dataset.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>

#include "satformer/data/batch.h"
#include "satformer/data/tokenizer.h"
#include "satformer/distributed/world.h"
#include "satformer/eval/loss_total.h"
#include "satformer/models/language_model.h"

namespace satformer::eval {

struct EvaluationOptions {
  data::BatchOptions batch;
  std::int64_t max_targets = 0;    // targets from the split's start on; 0: all
  std::int64_t sequences = 0;      // held in memory at a time; 0: about 4096 tokens. Changes rounding only.
  c10::Device device = c10::kCPU;  // where the model is
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::function<void(std::int64_t targets)> progress;  // called with the targets done; empty: none
  // The ranks that evaluate together, each a part of the batches; all call evaluate() and get the same result, bit for
  // bit that of one rank. Null: this process alone.
  distributed::World* world = nullptr;
};

// Sum of -log p(target) over the split's windows (data/batch.h): every token but the first is a target exactly once,
// and sees at most seq_length tokens before it. Does not depend on any batch size of training. Error when the split
// holds less than one window.
LossTotal evaluate(models::LanguageModel& model, const data::TokenDataset& dataset, const EvaluationOptions& options);

// UTF-8 bytes of the text that the targets of a whole split (every token but the first) stand for.
std::int64_t target_bytes(const data::TokenDataset& dataset, const data::Tokenizer& tokenizer);

}  // namespace satformer::eval
