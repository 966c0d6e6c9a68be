#pragma once
// One model over one stream of tokens, in numbers.
#include <nlohmann/json.hpp>

#include "satformer/analysis/gate_json.h"
#include "satformer/analysis/gate_study.h"
#include "satformer/analysis/token_stream.h"

namespace satformer::analysis {

struct StudyOptions {
  GateStudyOptions gates;
  GateJsonOptions json;
};

enum class StudyParts {
  all,
  numbers
};  // numbers: what can be compared between checkpoints; no histogram, tokens, text

// Whether the model has a way to early representations that a study can tell of: all but the plain Transformer.
bool has_early_access(const models::ModelConfig& config);

// {"gates": gate_numbers and gate_details, or null; "access": access_json}. Error for a model without early access.
nlohmann::json study_model(models::LanguageModel& model, const TokenStream& stream, const StudyOptions& options,
                           StudyParts parts);

// What of a study is kept for each checkpoint of a run: without the profile by position and the classes of single
// heads.
nlohmann::json for_dynamics(nlohmann::json study);

}  // namespace satformer::analysis
