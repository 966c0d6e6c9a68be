// satformer eval: loss, perplexity and bits per byte of a checkpoint on a split of a dataset.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/commands.h"
#include "apps/options.h"
#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/config/config.h"
#include "satformer/core/progress.h"
#include "satformer/data/window.h"
#include "satformer/eval/checkpoint_data.h"
#include "satformer/eval/evaluate.h"
#include "satformer/run/run_config.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"

namespace satformer::apps {
namespace {

struct EvalFlags {
  ModelFlags model;
  std::string json;
};

// Bytes of the text behind the split's targets, by the first of these that is there: what `prepare` counted, the
// checkpoint's tokenizer, the data folder's tokenizer.
std::optional<std::int64_t> text_bytes(const std::filesystem::path& checkpoint, const std::filesystem::path& data_dir,
                                       const std::string& split, const data::TokenDataset& dataset) {
  if (const auto info = data::read_dataset_info(data_dir)) {
    const data::SplitInfo& counted = split == "val" ? info->val : info->train;
    if (counted.tokens == dataset.num_tokens() && counted.bytes > 0) return counted.bytes;
  }
  for (const std::filesystem::path& folder : {checkpoint, data_dir}) {
    const auto tokenizer = data::find_tokenizer(folder);
    if (!tokenizer) continue;
    const std::int64_t bytes = eval::target_bytes(dataset, data::Tokenizer(*tokenizer));
    if (bytes > 0) return bytes;
  }
  return std::nullopt;
}

eval::LossTotal evaluate_with_progress(models::LanguageModel& model, const data::TokenDataset& dataset,
                                       eval::EvaluationOptions options) {
  Progress progress("eval", "tokens", dataset.num_tokens() - 1);
  options.progress = [&progress](std::int64_t targets) { progress.update(targets); };
  const eval::LossTotal result = eval::evaluate(model, dataset, options);
  progress.finish();
  return result;
}

void report(const EvalFlags& flags, const eval::LossTotal& result, const std::optional<std::int64_t>& bytes) {
  nlohmann::json json = {{"loss", result.mean()},
                         {"perplexity", result.perplexity()},
                         {"bits_per_byte", nullptr},
                         {"tokens", result.num_targets}};
  fmt::print("{} split: loss {:.4f}, perplexity {:.2f}, {} tokens\n", flags.model.split.name, result.mean(),
             result.perplexity(), result.num_targets);
  if (bytes) {
    json["bits_per_byte"] = result.bits_per_byte(*bytes);
    fmt::print("bits per byte {:.4f}\n", result.bits_per_byte(*bytes));
  }
  write_json_result(flags.json, json);
}

void eval_command(const EvalFlags& flags) {
  const std::string& split = flags.model.split.name;
  const c10::Device device = select_device(flags.model.device);
  const std::filesystem::path path = checkpoint::find(flags.model.checkpoint);
  const auto model = checkpoint::load_model(path);
  const train::DataConfig data = eval::data_config(path, model->config(), flags.model.split);
  const auto dataset =
      data::TokenDataset::open(data.data_dir, eval::prefix_of(data, split), {.vocab_size = model->config().vocab_size});
  data::require_window(fmt::format("the {} split", split), dataset.num_tokens(), data.seq_length);

  eval::EvaluationOptions options;
  options.batch = train::batch_options(data, model->config());
  options.sequences = flags.model.sequences;
  options.device = device;
  options.dtype = select_dtype(flags.model.dtype, device, "--dtype");
  model->to(device);
  const eval::LossTotal result = evaluate_with_progress(*model, dataset, options);
  report(flags, result, text_bytes(path, data.data_dir, split, dataset));
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app.add_subcommand("eval", "Loss, perplexity and bits per byte of a checkpoint");
  add_model_options(*command, flags->model);
  add_threads_option(*command);
  add_json_option(*command, flags->json);
  command->callback([flags] { eval_command(*flags); });
}

}  // namespace satformer::apps
