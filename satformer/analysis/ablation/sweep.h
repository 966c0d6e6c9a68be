#pragma once
// How much a model's loss changes when its gates are replaced (intervention.h), for one selection of gates after
// the other: all, layer by layer, head by head, group of token classes by group.
#include <cstdint>
#include <string_view>
#include <vector>

#include "satformer/analysis/ablation/intervention.h"
#include "satformer/analysis/tokens/stream.h"
#include "satformer/models/language_model.h"

namespace satformer::analysis {

enum class AblationScope { all, layer, head, category };

// "all", "layer", "head", "category".
std::string_view scope_name(AblationScope scope);

// The selections of a scope, in order. `categories` is needed by the scope category. Error for a model that mixes
// first values in no layer.
std::vector<GateSelection> selections(const models::ModelConfig& config, AblationScope scope,
                                      const TokenCategories* categories);

struct Ablation {
  std::vector<GateSelection> selections;
  // nats, summed over the targets of a bootstrap's block of windows
  std::vector<double> targets;              // [blocks]
  std::vector<double> intact;               // [blocks]
  std::vector<std::vector<double>> losses;  // [selection][blocks]
};

struct AblationOptions {
  InterventionRule rule;
  // What an intervention cannot change, the states below its first layer, is computed once for all selections. False:
  // each selection is a whole pass; the same numbers, to measure what the reuse is worth.
  bool reuse = true;
};

// Runs the model over the stream, once intact and once for each selection.
Ablation ablate(models::LanguageModel& model, const TokenStream& stream, std::vector<GateSelection> selections,
                const GateMeans* means, const AblationOptions& options);

}  // namespace satformer::analysis
