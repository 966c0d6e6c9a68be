#pragma once
// A batch as what a model takes.
#include <c10/core/Device.h>

#include "satformer/data/batch.h"
#include "satformer/models/language_model.h"
#include "satformer/runtime/device.h"

namespace satformer::eval {

// On the model's device; document ids stay on the CPU, as ModelInput wants them.
inline models::ModelInput model_input(const data::Batch& batch, c10::Device device) {
  return {.input_ids = to_device(batch.input_ids, device),
          .positions = to_device(batch.positions, device),
          .document_ids = batch.document_ids};
}

}  // namespace satformer::eval
