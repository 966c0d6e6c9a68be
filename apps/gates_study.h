#pragma once
// The work of `satformer gates`: which tokens, which models, and the document that is made of them.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "satformer/analysis/study.h"
#include "satformer/core/files.h"
#include "satformer/models/language_model.h"

namespace satformer::apps {

struct GatesFlags {
  std::string checkpoint, data, text, split = "val", output, tokenizer, categories, dtype = "auto", device = "auto",
                                      json;
  std::int64_t seq_length = 0, max_tokens = 0, sequences = 0;
  bool overwrite = false, every_checkpoint = false, no_initial = false;
  analysis::StudyOptions study{.gates = {.gates = {}, .text_tokens = 512}, .json = {}};
};

// The tokens to look at, and what they come from.
struct GatesSource {
  std::unique_ptr<StagedDirectory> text_shards;  // of --text; goes when this does
  std::optional<data::TokenDataset> dataset;
  std::optional<analysis::TokenClassifier> classifier;
  std::string name;
  data::BatchOptions batch;
};

// Opens the tokens that the flags and the checkpoint name.
GatesSource open_gates_source(const GatesFlags& flags, const std::filesystem::path& checkpoint,
                              const models::ModelConfig& model);

// The numbers of the checkpoint's model, of the model before training and, with --every-checkpoint, of the run's other
// checkpoints, over the same tokens: the document of docs/gates.md. The model goes to the device.
nlohmann::json make_gates_document(const GatesFlags& flags, const std::filesystem::path& checkpoint,
                                   models::LanguageModel& model, const GatesSource& source, c10::Device device);

}  // namespace satformer::apps
