#include "satformer/run/run_config.h"

#include <cmath>

#include "satformer/config/key_checks.h"
#include "satformer/core/error.h"
#include "satformer/data/token_dataset.h"
#include "satformer/models/architectures.h"
#include "satformer/run/run_config_keys.h"

namespace satformer::train {
namespace {

// Our name of the architecture, from our key or the published one.
std::string architecture(const nlohmann::json& values, const std::string& source) {
  const auto name = [&](const char* key) -> std::optional<std::string> {
    const auto spelling = get_optional<std::string>(values, key);
    if (!spelling) return std::nullopt;
    return models::architecture_from_name(*spelling, fmt::format("{}: {}", source, key)).name;
  };
  const auto own = name("model.architecture"), published = name("model.class_name");
  require(own || published, "{}: model.architecture is missing, for example \"satformer\"", source);
  if (own && published) {
    require(*own == *published, "{}: model.architecture is {}, but model.class_name is that of {}; give one of them",
            source, *own, *published);
  }
  return own ? *own : *published;
}

// A number of steps, or else of billions of tokens, rounded down to whole steps.
std::int64_t steps(std::optional<std::int64_t> given, double billions, const char* key, std::int64_t tokens_per_step,
                   std::int64_t least, const std::string& source) {
  if (given) return *given;
  at_least(0.0)(billions, RunConfig(), {source, key});
  const double wanted = std::floor(billions * 1e9 / static_cast<double>(tokens_per_step));
  require(wanted < 1e15, "{}: {} is {}, too large", source, key, wanted);
  require(wanted >= static_cast<double>(least), "{}: {} is less than one step of {} tokens", source, key,
          tokens_per_step);
  return static_cast<std::int64_t>(wanted);
}

// What follows from the given values: the micro-batch, and the schedule in steps.
void derive(TrainingConfig& training, std::int64_t seq_length, const std::string& source) {
  // A step of 2^40 tokens is far beyond any use, and far from overflow.
  const double step_tokens = static_cast<double>(training.batch_size) *
                             static_cast<double>(training.gradient_accumulation_steps) *
                             static_cast<double>(seq_length);
  require(step_tokens <= static_cast<double>(std::int64_t{1} << 40),
          "{}: training.batch_size x gradient_accumulation_steps x data.seq_length is {:.3g} tokens a step, too many",
          source, step_tokens);
  if (training.micro_batch_size == 0) training.micro_batch_size = training.batch_size;
  const std::int64_t tokens = training.sequences_per_step() * seq_length;
  optim::Schedule& schedule = training.schedule;
  schedule.warmup_steps =
      steps(training.warmup_steps, training.warmup_tokens, "training.warmup_tokens", tokens, 0, source);
  schedule.max_steps = steps(training.max_steps, training.max_tokens, "training.max_tokens", tokens, 1, source);
  schedule.decay = optim::parse_decay(training.lr_decay_style, fmt::format("{}: training.lr_decay_style", source));
}

RunConfig from_parsed(ParsedConfig parsed, const std::string& source) {
  RunConfig config;
  config.model = models::model_config_from_json(value_at(parsed.values, "model.config_overrides"),
                                                architecture(parsed.values, source), source);
  read_keys(run_config_rows(), parsed.values, source, config);
  derive(config.training, config.data.seq_length, source);
  require(!config.training.cuda_graph || !config.data.document_mask,
          "{}: training.cuda_graph needs data.document_mask false", source);
  require(config.data.seq_length <= config.model.max_position_embeddings,
          "{}: data.seq_length is {}, but model.config_overrides.max_position_embeddings is {}", source,
          config.data.seq_length, config.model.max_position_embeddings);
  config.values = std::move(parsed.values);
  config.ignored = std::move(parsed.ignored);
  return config;
}

}  // namespace

RunConfig load_run_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return from_parsed(load_config(path, run_config_keys(), overrides), path.string());
}

RunConfig parse_run_config(const std::string& text, const std::string& source,
                           const std::vector<std::string>& overrides) {
  return from_parsed(parse_config(text, source, run_config_keys(), overrides), source);
}

data::BatchOptions batch_options(const DataConfig& data, const models::ModelConfig& model) {
  data::BatchOptions options{data.seq_length, data.document_mask, data.end_of_text_id};
  if (!options.end_of_text_id) {
    const auto info = data::read_dataset_info(data.data_dir);
    options.end_of_text_id = info ? info->end_of_text_id : model.eos_token_id;
  }
  require(!options.document_mask || (*options.end_of_text_id >= 0 && *options.end_of_text_id < model.vocab_size),
          "data.end_of_text_id: {} is outside the vocabulary of {}: no document would ever end",
          *options.end_of_text_id, model.vocab_size);
  return options;
}

}  // namespace satformer::train
