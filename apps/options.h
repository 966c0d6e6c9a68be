#pragma once
// What several commands share besides commands.h.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>

#include "satformer/eval/split_options.h"

namespace c10 {
struct Device;
}
namespace satformer::analysis {
struct StreamOptions;
struct TokenSourceOptions;
}  // namespace satformer::analysis

namespace satformer::apps {

// CHECKPOINT: a checkpoint's folder or a run's.
void add_checkpoint_option(CLI::App& command, std::string& checkpoint);

// A checkpoint's model over a split: what to run, on which data, how.
struct ModelFlags {
  std::string checkpoint, dtype = "auto", device = "auto";
  eval::SplitOptions split;
  std::int64_t sequences = 0;  // windows in memory at a time; 0: 4096 tokens' worth
};

// CHECKPOINT, --data, --split, --seq-length, --batch, --dtype, --device.
void add_model_options(CLI::App& command, ModelFlags& flags);

// --max-tokens, --tokenizer, --categories; the split is that of ModelFlags.
void add_token_options(CLI::App& command, analysis::TokenSourceOptions& source, std::int64_t& max_tokens);

// Windows at a time, device (that of --device, selected) and dtype.
analysis::StreamOptions stream_options(const ModelFlags& flags, c10::Device device);

// Error when `output` exists, unless it is an empty folder or, with `overwrite`, one that `command` wrote: it holds
// `file`.
void check_report_output(const std::filesystem::path& output, bool overwrite, const std::string& command,
                         const std::string& file);

// --threads N: CPU threads of LibTorch's operators; takes effect as soon as flags are parsed.
CLI::Option* add_threads_option(CLI::App& command);

// What a command prints for an exception, in one line.
std::string error_message(const std::exception_ptr& exception);

// SIGINT and SIGTERM as a question. The first signal is remembered while the object lives; a second one ends the
// process at once. One object at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
};

}  // namespace satformer::apps
