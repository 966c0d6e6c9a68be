#include "satformer/analysis/study.h"

#include "satformer/analysis/access_json.h"
#include "satformer/analysis/gate_intervention.h"
#include "satformer/core/error.h"

namespace satformer::analysis {
namespace {

nlohmann::json gates_of(models::LanguageModel& model, const TokenStream& stream, const StudyOptions& options,
                        StudyParts parts) {
  GateStudyOptions gates = options.gates;
  if (parts == StudyParts::numbers) gates.text_tokens = 0;
  const GateCollector collector = collect_gates(model, stream, gates);
  GateJsonOptions json = options.json;
  json.gate_function = model.config().value_residual_gate;
  nlohmann::json result = gate_numbers(collector, stream.classifier(), json);
  if (parts == StudyParts::all) result.update(gate_details(collector, stream.classifier(), json));
  return result;
}

}  // namespace

bool has_early_access(const models::ModelConfig& config) {
  if (config.architecture == "satformer" || config.architecture == "resformer") return !mixing_layers(config).empty();
  return config.architecture != "transformer";
}

nlohmann::json study_model(models::LanguageModel& model, const TokenStream& stream, const StudyOptions& options,
                           StudyParts parts) {
  require(has_early_access(model.config()), "a {} without a value residual has no access to early representations",
          model.config().architecture);
  const bool gated = !gated_layers(model.config()).empty();
  return {{"gates", gated ? gates_of(model, stream, options, parts) : nlohmann::json()},
          {"access", gated ? nlohmann::json() : access_json(collect_depth_access(model, stream))}};
}

nlohmann::json for_dynamics(nlohmann::json study) {
  nlohmann::json& gates = study["gates"];
  if (gates.is_null()) return study;
  for (const char* part : {"positions", "histogram", "tokens", "text"}) gates.erase(part);
  if (gates["categories"].is_null()) return study;
  for (const char* part : {"heads", "sources"}) gates["categories"].erase(part);
  return study;
}

}  // namespace satformer::analysis
