#include "apps/options.h"

#include "satformer/analysis/tokens/source.h"
#include "satformer/core/error.h"
#include "satformer/runtime/precision.h"

namespace satformer::apps {

void add_checkpoint_option(CLI::App& command, std::string& checkpoint) {
  command.add_option("checkpoint", checkpoint, "A checkpoint's folder, or a run's (its newest checkpoint)")
      ->type_name("CHECKPOINT")
      ->required();
}

void add_model_options(CLI::App& command, ModelFlags& flags) {
  add_checkpoint_option(command, flags.checkpoint);
  command.add_option("--data", flags.split.folder, "Folder of the token shards [the training data]")->type_name("DIR");
  command.add_option("--split", flags.split.name, "Which split")
      ->capture_default_str()
      ->check(CLI::IsMember({"val", "train"}));
  command.add_option("--seq-length", flags.split.seq_length, "Tokens of one window [that of the training]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command.add_option("--batch", flags.sequences, "Windows in memory at a time [4096 tokens' worth]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command.add_option("--dtype", flags.dtype, "auto, float32 or bfloat16")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}));
  command.add_option("--device", flags.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
}

void add_token_options(CLI::App& command, analysis::TokenSourceOptions& source, std::int64_t& max_tokens) {
  command.add_option("--max-tokens", max_tokens, "Look at about so many tokens from the start [all]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--tokenizer", source.tokenizer, "A SentencePiece tokenizer.model [the checkpoint's, the data's]")
      ->type_name("FILE");
  command.add_option("--categories", source.categories, "Token classes: docs/gates.md [English, built in]")
      ->type_name("FILE");
}

analysis::StreamOptions stream_options(const ModelFlags& flags, c10::Device device) {
  analysis::StreamOptions options;
  options.sequences = flags.sequences;
  options.device = device;
  options.dtype = select_dtype(flags.dtype, device, "--dtype");
  return options;
}

void check_report_output(const std::filesystem::path& output, bool overwrite, const std::string& command,
                         const std::string& file) {
  namespace fs = std::filesystem;
  if (!fs::exists(fs::symlink_status(output))) return;
  require(fs::is_directory(output), "--output {}: exists and is no folder", output.string());
  if (fs::is_empty(output)) return;
  require(overwrite, "--output {}: exists and is not empty; give another folder or --overwrite", output.string());
  require(fs::exists(output / file), "--output {}: not overwritten, because `satformer {}` did not write it",
          output.string(), command);
}

}  // namespace satformer::apps
