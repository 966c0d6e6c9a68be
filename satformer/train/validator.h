#pragma once
// The validation of a run: the first targets of the validation split.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>

#include "satformer/data/token_dataset.h"
#include "satformer/distributed/world.h"
#include "satformer/eval/evaluate.h"
#include "satformer/models/language_model.h"
#include "satformer/run/run_config.h"

namespace satformer::train {

class Validator {
 public:
  // Opens the split. Error, before any training, when it is missing or holds less than one window.
  Validator(const RunConfig& config, c10::Device device, c10::ScalarType dtype, distributed::World& world);

  // All ranks call it and get the same. Leaves the model in training mode.
  eval::LossTotal run(models::LanguageModel& model) const;

  // Of the split's shards; ranks must have the same.
  std::string fingerprint() const;

 private:
  data::TokenDataset dataset_;
  eval::EvaluationOptions options_;
};

}  // namespace satformer::train
