#pragma once
// The work of `satformer gates`: which tokens, which models, and the document that is made of them.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/token_source.h"
#include "satformer/analysis/study.h"
#include "satformer/models/language_model.h"

namespace satformer::apps {

struct GatesFlags {
  TokenSourceFlags source;
  std::string checkpoint, output, dtype = "auto", device = "auto", json;
  std::int64_t sequences = 0;
  bool overwrite = false, every_checkpoint = false, no_initial = false;
  analysis::StudyOptions study{.gates = {.gates = {}, .text_tokens = 512}, .json = {}};
};

// The numbers of the checkpoint's model, of the model before training and, with --every-checkpoint, of the run's other
// checkpoints, over the same tokens: the document of docs/gates.md. The model goes to the device.
nlohmann::json make_gates_document(const GatesFlags& flags, const std::filesystem::path& checkpoint,
                                   models::LanguageModel& model, const TokenSource& source, c10::Device device);

}  // namespace satformer::apps
