#pragma once
// What the tests of analysis share.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "satformer/analysis/tokens/stream.h"
#include "tests/satformer/train/scratch_folder.h"
#include "tests/satformer/train/tiny_run.h"

namespace satformer::analysis {

// A tiny untrained model and 500 tokens in windows of 16.
struct TinyStudy {
  ScratchFolder folder;
  std::filesystem::path data = train::make_tiny_data(folder.path() / "data");
  data::TokenDataset dataset = data::TokenDataset::open(data, "val", {.vocab_size = train::kTinyVocabulary});
  std::shared_ptr<models::LanguageModel> model;
  StreamOptions options;

  explicit TinyStudy(const std::vector<std::string>& overrides = {}) {
    const train::RunConfig config = train::tiny_config(data, overrides);
    model = models::make_model(config.model, 7);
    model->eval();
    options.batch = train::batch_options(config.data, config.model);
  }
  TokenStream stream() const { return {dataset, nullptr, options}; }
};

}  // namespace satformer::analysis
