#pragma once
// One model over one stream of tokens, in numbers: its gates, or how it reads early representations otherwise.
#include <optional>

#include "satformer/analysis/access/summary.h"
#include "satformer/analysis/gates/collect.h"
#include "satformer/analysis/gates/summary.h"
#include "satformer/analysis/tokens/stream.h"

namespace satformer::analysis {

struct ModelStudy {
  std::optional<GateSummary> gates;     // of an architecture with gates
  std::optional<AccessSummary> access;  // of another one
};

struct StudyOptions {
  GateCollectOptions gates;
  GateSummaryOptions summary;
};

enum class StudyParts {
  all,
  numbers,  // what can be compared between checkpoints: no GateDetails
};

// Whether the model has a way to early representations that a study can tell of: all but the plain Transformer.
bool has_early_access(const models::ModelConfig& config);

// Error for a model without early access.
ModelStudy study_model(models::LanguageModel& model, const TokenStream& stream, const StudyOptions& options,
                       StudyParts parts);

}  // namespace satformer::analysis
