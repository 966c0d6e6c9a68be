#include "satformer/run/run_config.h"

#include <cmath>

#include "satformer/core/error.h"
#include "satformer/data/token_dataset.h"
#include "satformer/models/architectures.h"

namespace satformer::train {
namespace {

// Reads values of one parsed config and names file and key when a value is out of range.
struct Reader {
  const nlohmann::json& values;
  const std::string& source;

  std::int64_t integer(const char* path, std::int64_t least) const {
    return checked(path, get<std::int64_t>(values, path), least);
  }
  std::optional<std::int64_t> optional_integer(const char* path, std::int64_t least) const {
    const auto value = get_optional<std::int64_t>(values, path);
    return value ? std::optional(checked(path, *value, least)) : std::nullopt;
  }
  // least <= value, and value < below.
  double number(const char* path, double least, double below = HUGE_VAL) const {
    const auto value = get<double>(values, path);
    require(value >= least && value < below, "{}: {} is {}, expected a number of at least {}{}", source, path, value,
            least, std::isfinite(below) ? fmt::format(" and below {}", below) : "");
    return value;
  }
  bool boolean(const char* path) const { return get<bool>(values, path); }
  std::string text(const char* path) const { return get<std::string>(values, path); }

 private:
  std::int64_t checked(const char* path, std::int64_t value, std::int64_t least) const {
    require(value >= least, "{}: {} is {}, expected an integer of at least {}", source, path, value, least);
    return value;
  }
};

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

// A key in steps, or else one in billions of tokens, rounded down to whole steps.
std::int64_t steps(const Reader& read, const char* in_steps, const char* in_billions, std::int64_t tokens_per_step,
                   std::int64_t least) {
  if (const auto given = read.optional_integer(in_steps, least)) return *given;
  const double wanted = std::floor(read.number(in_billions, 0.0) * 1e9 / static_cast<double>(tokens_per_step));
  require(wanted < 1e15, "{}: {} is {}, too large", read.source, in_billions, wanted);
  require(wanted >= static_cast<double>(least), "{}: {} is less than one step of {} tokens", read.source, in_billions,
          tokens_per_step);
  return static_cast<std::int64_t>(wanted);
}

DataConfig data_config(const Reader& read) {
  DataConfig data;
  data.data_dir = read.text("data.data_dir");
  data.train_prefix = read.text("data.train_prefix");
  data.val_prefix = read.text("data.val_prefix");
  data.seq_length = read.integer("data.seq_length", 1);
  data.document_mask = read.boolean("data.document_mask");
  data.end_of_text_id = read.optional_integer("data.end_of_text_id", 0);
  data.verify_shards = read.boolean("data.verify_shards");
  return data;
}

optim::Schedule schedule(const Reader& read, std::int64_t tokens_per_step) {
  optim::Schedule schedule;
  schedule.peak = read.number("training.learning_rate", 0.0);
  schedule.minimum = read.number("training.min_lr", 0.0);
  schedule.warmup_steps = steps(read, "training.warmup_steps", "training.warmup_tokens", tokens_per_step, 0);
  schedule.max_steps = steps(read, "training.max_steps", "training.max_tokens", tokens_per_step, 1);
  schedule.decay =
      optim::parse_decay(read.text("training.lr_decay_style"), fmt::format("{}: training.lr_decay_style", read.source));
  schedule.decay_fraction = read.number("training.decay_fraction", 0.0);
  require(schedule.decay_fraction <= 1.0, "{}: training.decay_fraction is {}, expected a number from 0 to 1",
          read.source, schedule.decay_fraction);
  return schedule;
}

TrainingConfig training_config(const Reader& read, std::int64_t seq_length) {
  TrainingConfig training;
  training.batch_size = read.integer("training.batch_size", 1);
  training.gradient_accumulation_steps = read.integer("training.gradient_accumulation_steps", 1);
  // A step of 2^40 tokens is far beyond any use, and far from overflow.
  const double step_tokens = static_cast<double>(training.batch_size) *
                             static_cast<double>(training.gradient_accumulation_steps) *
                             static_cast<double>(seq_length);
  require(step_tokens <= static_cast<double>(std::int64_t{1} << 40),
          "{}: training.batch_size x gradient_accumulation_steps x data.seq_length is {:.3g} tokens a step, too many",
          read.source, step_tokens);
  training.micro_batch_size = read.optional_integer("training.micro_batch_size", 1).value_or(training.batch_size);
  training.max_skipped_steps = read.integer("training.max_skipped_steps", 1);
  training.weight_decay = read.number("training.weight_decay", 0.0);
  training.grad_clip = read.number("training.grad_clip", 0.0);
  training.dtype = read.text("training.dtype");
  training.gradient_checkpointing = read.boolean("training.gradient_checkpointing");
  training.cuda_graph = read.boolean("training.cuda_graph");
  training.schedule = schedule(read, training.sequences_per_step() * seq_length);
  training.adamw.beta1 = read.number("training.beta1", 0.0, 1.0);
  training.adamw.beta2 = read.number("training.beta2", 0.0, 1.0);
  training.adamw.eps = read.number("training.adam_eps", 0.0);
  return training;
}

CheckpointConfig checkpoint_config(const Reader& read) {
  CheckpointConfig checkpointing;
  checkpointing.checkpoint_dir = read.text("checkpointing.checkpoint_dir");
  checkpointing.checkpoint_interval = read.integer("checkpointing.checkpoint_interval", 0);
  checkpointing.keep_last = read.optional_integer("checkpointing.keep_last", 1);
  return checkpointing;
}

LoggingConfig logging_config(const Reader& read) {
  LoggingConfig logging;
  logging.log_interval = read.integer("logging.log_interval", 1);
  logging.eval_interval = read.integer("logging.eval_interval", 0);
  logging.eval_tokens = read.integer("logging.eval_tokens", 1);
  logging.tensorboard = read.boolean("logging.tensorboard");
  return logging;
}

SystemConfig system_config(const Reader& read) {
  SystemConfig system;
  system.seed = static_cast<std::uint64_t>(read.integer("system.seed", 0));
  system.device = read.text("system.device");
  system.threads = read.optional_integer("system.threads", 1);
  return system;
}

DistributedConfig distributed_config(const Reader& read) {
  DistributedConfig distributed;
  distributed.bucket_mb = read.number("distributed.bucket_mb", 0.0, 1 << 20);
  distributed.shard_optimizer = read.boolean("distributed.shard_optimizer");
  distributed.timeout = read.number("distributed.timeout", 1.0, 1e7);
  distributed.check_interval = read.integer("distributed.check_interval", 0);
  return distributed;
}

RunConfig from_parsed(ParsedConfig parsed, const std::string& source) {
  const Reader read{parsed.values, source};
  RunConfig config;
  config.model = models::model_config_from_json(value_at(parsed.values, "model.config_overrides"),
                                                architecture(parsed.values, source), source);
  config.data = data_config(read);
  config.training = training_config(read, config.data.seq_length);
  require(!config.training.cuda_graph || !config.data.document_mask,
          "{}: training.cuda_graph needs data.document_mask false", source);
  config.checkpointing = checkpoint_config(read);
  config.logging = logging_config(read);
  config.system = system_config(read);
  config.distributed = distributed_config(read);
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
