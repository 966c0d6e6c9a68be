#pragma once
// The mean gates that an intervention puts in the gates' place.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "satformer/analysis/tokens/stream.h"
#include "satformer/models/language_model.h"

namespace satformer::analysis {

// Means over calibration tokens, in the layers that mix first values; 0 elsewhere.
struct GateMeans {
  at::Tensor heads;        // float32 [L, H_kv]
  at::Tensor tokens = {};  // float32 [L, V, H_kv], head's mean where an id did not occur; undefined: not asked for
  std::int64_t count = 0;  // of the tokens
};

// Runs the model over the stream; by_token asks for GateMeans::tokens (a double for each layer, id and head while it
// runs). Error for a model that mixes first values in no layer.
GateMeans calibrate_gates(models::LanguageModel& model, const TokenStream& stream, bool by_token);

}  // namespace satformer::analysis
