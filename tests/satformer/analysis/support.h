#pragma once
// What the tests of analysis share.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "satformer/analysis/tokens/stream.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

namespace satformer::analysis {

// A tiny untrained model and 500 tokens in windows of 16.
struct TinyStudy {
  testing::TemporaryFolder folder;
  std::filesystem::path data = testing::make_tiny_data(folder.path() / "data");
  data::TokenDataset dataset = data::TokenDataset::open(data, "val", {.vocab_size = testing::kTinyVocabulary});
  std::shared_ptr<models::LanguageModel> model;
  StreamOptions options;

  explicit TinyStudy(const std::vector<std::string>& overrides = {}) {
    const train::RunConfig config = testing::tiny_config(data, overrides);
    model = models::make_model(config.model, 7);
    model->eval();
    options.batch = train::batch_options(config.data, config.model);
  }
  TokenStream stream() const { return {dataset, nullptr, options}; }
};

}  // namespace satformer::analysis
