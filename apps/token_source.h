#pragma once
// The tokens that an analysis of a checkpoint looks at, and the folder that it writes.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "satformer/analysis/token_stream.h"
#include "satformer/io/files.h"

namespace satformer::apps {

struct TokenSourceFlags {
  std::string data, text, split = "val", tokenizer, categories;
  std::int64_t seq_length = 0, max_tokens = 0;
};

// All but --text.
void add_token_source_options(CLI::App& command, TokenSourceFlags& flags);

// The tokens to look at, and what they come from.
struct TokenSource {
  std::unique_ptr<StagedDirectory> text_shards;  // of --text; goes when this does
  std::optional<data::TokenDataset> dataset;
  std::optional<analysis::TokenClassifier> classifier;
  std::string name;
  data::BatchOptions batch;
};

// Opens the tokens that the flags and the checkpoint name.
TokenSource open_token_source(const TokenSourceFlags& flags, const std::filesystem::path& checkpoint,
                              const models::ModelConfig& model);

// The source's windows, the first that hold max_tokens (0: all).
analysis::StreamOptions stream_options(const TokenSource& source, std::int64_t max_tokens);

// Error when `output` exists, unless it is an empty folder or, with `overwrite`, one that `command` wrote: it holds
// `file`.
void check_report_output(const std::filesystem::path& output, bool overwrite, const std::string& command,
                         const std::string& file);

}  // namespace satformer::apps
