#include "satformer/analysis/study/model_study.h"

#include "satformer/core/error.h"
#include "satformer/models/architectures.h"

namespace satformer::analysis {
namespace {

GateSummary gates_of(models::LanguageModel& model, const TokenStream& stream, const StudyOptions& options,
                     StudyParts parts) {
  GateCollectOptions collected = options.gates;
  if (parts == StudyParts::numbers) collected.text_tokens = 0;
  const GateCollector collector = collect_gates(model, stream, collected);
  GateSummary summary =
      summarize_gates(collector, model.config().value_residual_gate, stream.classifier(), options.summary);
  if (parts == StudyParts::all) summary.details = gate_details(collector, stream.classifier(), options.summary);
  return summary;
}

}  // namespace

bool has_early_access(const models::ModelConfig& config) {
  switch (models::architecture_of(config).access) {
    case models::AccessKind::kNone:
      return false;
    case models::AccessKind::kStaticValueMix:
    case models::AccessKind::kSelectiveValueMix:
      return !mixing_layers(config).empty();
    default:
      return true;
  }
}

ModelStudy study_model(models::LanguageModel& model, const TokenStream& stream, const StudyOptions& options,
                       StudyParts parts) {
  require(has_early_access(model.config()), "a {} without a value residual has no access to early representations",
          model.config().architecture);
  if (!gated_layers(model.config()).empty()) return {.gates = gates_of(model, stream, options, parts), .access = {}};
  return {.gates = {}, .access = summarize_access(collect_depth_access(model, stream))};
}

}  // namespace satformer::analysis
