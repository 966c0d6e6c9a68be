#pragma once
// The gates of a SATFormer over a stream of tokens.
#include <cstdint>
#include <vector>

#include "satformer/analysis/gates/collector.h"
#include "satformer/analysis/tokens/stream.h"

namespace satformer::analysis {

struct GateCollectOptions {
  GateSettings gates;
  std::int64_t text_tokens = 0;  // of the split's start, whose gates are kept one by one
};

// The layers that mix first values; empty for architectures that never do.
std::vector<std::int64_t> mixing_layers(const models::ModelConfig& config);

// Those whose mix has gates; empty for other architectures.
std::vector<std::int64_t> gated_layers(const models::ModelConfig& config);

// Runs the model over the stream. alpha = gate(logits), as the model computes it in the stream's dtype, and the
// contribution |alpha v1|_2 / |v|_2 over a head's dimensions. Error for a model without gates.
GateCollector collect_gates(models::LanguageModel& model, const TokenStream& stream, const GateCollectOptions& options);

}  // namespace satformer::analysis
