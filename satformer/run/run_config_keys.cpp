#include "satformer/run/run_config_keys.h"

#include <fmt/format.h>

#include "satformer/config/key_checks.h"
#include "satformer/models/architectures.h"
#include "satformer/models/model_keys.h"

namespace satformer::train {
namespace {

std::vector<ConfigKey<DataConfig>> data_rows() {
  using C = DataConfig;
  return {{"data_dir", &C::data_dir, "folder of the token shards"},
          {"train_prefix", &C::train_prefix, "training shards are PREFIX*.bin"},
          {"val_prefix", &C::val_prefix, "validation shards are PREFIX*.bin"},
          {"seq_length", &C::seq_length, "tokens of one sequence", at_least(1)},
          {"document_mask", &C::document_mask, "attention and positions do not cross documents"},
          {"end_of_text_id", &C::end_of_text_id,
           "id that ends a document; null: dataset.json's, else the model's eos_token_id", at_least(0)},
          {"verify_shards", &C::verify_shards, "check every shard's checksum and ids at the start"}};
}

void check_fraction(double value, const TrainingConfig& config, const KeyPlace& place) {
  at_least(0.0)(value, config, place);
  require(value <= 1.0, "{}: {} is {}, expected a number from 0 to 1", place.source, place.path, value);
}

std::vector<ConfigKey<TrainingConfig>> training_rows() {
  using C = TrainingConfig;
  using optim::AdamWOptions;
  using optim::Schedule;
  return {
      {"batch_size", &C::batch_size, "sequences; one step trains on batch_size x gradient_accumulation_steps",
       at_least(1)},
      {"gradient_accumulation_steps", &C::gradient_accumulation_steps, "factor of the step's size, see batch_size",
       at_least(1)},
      ConfigKey<C>("micro_batch_size", &C::micro_batch_size,
                   "sequences held in memory at a time; null: batch_size; changes rounding only", at_least(1))
          .derived(),
      {"learning_rate", &C::schedule, &Schedule::peak, "peak learning rate", at_least(0.0)},
      {"min_lr", &C::schedule, &Schedule::minimum, "learning rate at the end of the decay", at_least(0.0)},
      {"warmup_tokens", &C::warmup_tokens, "linear warm-up, in billions of tokens"},
      {"warmup_steps", &C::warmup_steps, "replaces warmup_tokens", at_least(0)},
      {"max_tokens", &C::max_tokens, "length of the run, in billions of tokens"},
      {"max_steps", &C::max_steps, "replaces max_tokens", at_least(1)},
      {"lr_decay_style", &C::lr_decay_style, "cosine, linear, constant or wsd (warm-up, stable, decay)"},
      {"decay_fraction", &C::schedule, &Schedule::decay_fraction, "wsd: part of max_steps in which the rate falls",
       check_fraction},
      {"weight_decay", &C::weight_decay, "decoupled; matrices of linear layers only", at_least(0.0)},
      {"beta1", &C::adamw, &AdamWOptions::beta1, "AdamW: decay of the gradient's mean", at_least(0.0, 1.0)},
      {"beta2", &C::adamw, &AdamWOptions::beta2, "AdamW: decay of the squared gradient's mean", at_least(0.0, 1.0)},
      {"adam_eps", &C::adamw, &AdamWOptions::eps, "AdamW: added to the root of the squared gradient's mean",
       at_least(0.0)},
      {"grad_clip", &C::grad_clip, "largest global norm of the gradient; 0: no clipping", at_least(0.0)},
      {"dtype", &C::dtype,
       "float32, bfloat16 (autocast, parameters stay float32), auto: bfloat16 where the device has it"},
      {"gradient_checkpointing", &C::gradient_checkpointing, "recompute blocks in the backward pass to save memory"},
      {"fused", &C::fused,
       "fused layers, for speed; false: the same model from plain operators under ordinary autograd"},
      {"cuda_graph", &C::cuda_graph,
       "run a micro-batch's forward and backward pass as one CUDA graph; not with data.document_mask"},
      {"max_skipped_steps", &C::max_skipped_steps,
       "stop after so many steps in a row with a loss or gradient that is not finite", at_least(1)}};
}

std::vector<ConfigKey<CheckpointConfig>> checkpoint_rows() {
  using C = CheckpointConfig;
  return {
      {"checkpoint_dir", &C::checkpoint_dir, "the run's folder when --output is not given"},
      {"checkpoint_interval", &C::checkpoint_interval, "steps between checkpoints; 0: at the end only", at_least(0)},
      {"keep_last", &C::keep_last, "how many checkpoints to keep; null: all", at_least(1)}};
}

std::vector<ConfigKey<LoggingConfig>> logging_rows() {
  using C = LoggingConfig;
  return {
      {"log_interval", &C::log_interval, "steps between progress lines (metrics.jsonl holds every step)", at_least(1)},
      {"eval_interval", &C::eval_interval, "steps between validations; 0: at the end only", at_least(0)},
      {"eval_tokens", &C::eval_tokens, "target tokens of one validation, at most the whole split", at_least(1)},
      {"tensorboard", &C::tensorboard, "write TensorBoard event files"}};
}

std::vector<ConfigKey<SystemConfig>> system_rows() {
  using C = SystemConfig;
  return {{"seed", &C::seed, "initialisation and data order", at_least(0)},
          {"device", &C::device, "auto, cpu, cuda or cuda:N"},
          {"threads", &C::threads, "CPU threads; null: LibTorch's choice; --threads goes before it", at_least(1)}};
}

std::vector<ConfigKey<DistributedConfig>> distributed_rows() {
  using C = DistributedConfig;
  return {{"bucket_mb", &C::bucket_mb, "MiB of gradients that ranks sum at a time, during the backward pass",
           at_least(0.0, 1 << 20)},
          {"shard_optimizer", &C::shard_optimizer, "each rank holds its part of AdamW's moments only"},
          {"timeout", &C::timeout, "seconds that a rank waits for another one before all end", at_least(1.0, 1e7)},
          {"check_interval", &C::check_interval,
           "steps between checks that all ranks hold the same parameters; 0: none", at_least(0)}};
}

std::vector<ConfigKey<RunConfig>> make_rows() {
  std::vector<ConfigKey<RunConfig>> rows;
  const auto add = [&](const char* section, auto part, const auto& part_rows) {
    const auto added = ConfigKey<RunConfig>::section(section, part, part_rows);
    rows.insert(rows.end(), added.begin(), added.end());
  };
  add("data", &RunConfig::data, data_rows());
  add("training", &RunConfig::training, training_rows());
  add("checkpointing", &RunConfig::checkpointing, checkpoint_rows());
  add("logging", &RunConfig::logging, logging_rows());
  add("system", &RunConfig::system, system_rows());
  add("distributed", &RunConfig::distributed, distributed_rows());
  return rows;
}

// Keys of the published files and trainer that mean nothing here.
constexpr const char* kWithoutMeaning[] = {
    "model.source",
    "model.module",
    "model.config_module",
    "model.config_class_name",
    "model.from_pretrained",
    "model.pretrained_path",
    "model.name_or_path",
    "tokenizer.name_or_path",
    "tokenizer.save_with_model",
    "training.compile_model",
    "training.fused_adamw",
    "checkpointing.save_final_model",
    "logging.eval_iters",
    "logging.wandb_project",
    "logging.wandb_run_name",
    "system.num_workers",
    "system.prefetch_factor",
    "system.pin_memory",
    "system.persistent_workers",
};

KeyList all_keys() {
  KeyList keys{
      {"model.architecture", KeyType::string, nullptr,
       fmt::format("name of the architecture: {}; or say model.class_name", models::architecture_names())},
      {"model.class_name", KeyType::string, nullptr, "the published class: SATFormerForCausalLM and the like"}};
  append_keys(run_config_rows(), keys);
  for (Key key : models::model_keys()) {
    key.path = "model.config_overrides." + key.path;
    keys.push_back(std::move(key));
  }
  for (const char* path : kWithoutMeaning) keys.push_back({path, KeyType::string, nullptr, ""});
  return keys;
}

}  // namespace

const std::vector<ConfigKey<RunConfig>>& run_config_rows() {
  static const std::vector<ConfigKey<RunConfig>> rows = make_rows();
  return rows;
}

const KeyList& run_config_keys() {
  static const KeyList keys = all_keys();
  return keys;
}

std::string describe_run_config_keys() {
  std::string text = "| key | default | meaning |\n|---|---|---|\n";
  for (const Key& key : run_config_keys()) {
    if (key.help.empty()) continue;
    const std::string fallback = key.required ? "required" : key.default_value.dump();
    text += fmt::format("| `{}` | {} | {} |\n", key.path, fallback, key.help);
  }
  return text;
}

}  // namespace satformer::train
