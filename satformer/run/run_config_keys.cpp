// The keys of a run's configuration: the one list that parsing, --help-config and docs/configuration.md share.
#include <fmt/format.h>

#include "satformer/run/run_config.h"

namespace satformer::train {
namespace {

constexpr auto kBoolean = KeyType::boolean;
constexpr auto kInteger = KeyType::integer;
constexpr auto kNumber = KeyType::number;
constexpr auto kString = KeyType::string;

KeyList own_keys() {
  return {
      {"model.architecture", kString, nullptr,
       "name of the architecture: transformer, resformer, satformer, denseformer, muddformer, hyperconnections; or "
       "say model.class_name"},
      {"model.class_name", kString, nullptr, "the published class: SATFormerForCausalLM and the like"},

      {"data.data_dir", kString, "./data", "folder of the token shards"},
      {"data.train_prefix", kString, "train", "training shards are PREFIX*.bin"},
      {"data.val_prefix", kString, "val", "validation shards are PREFIX*.bin"},
      {"data.seq_length", kInteger, 2048, "tokens of one sequence"},
      {"data.document_mask", kBoolean, false, "attention and positions do not cross documents"},
      {"data.end_of_text_id", kInteger, nullptr,
       "id that ends a document; null: dataset.json's, else the model's eos_token_id"},
      {"data.verify_shards", kBoolean, true, "check every shard's checksum and ids at the start"},

      {"training.batch_size", kInteger, 8, "sequences; one step trains on batch_size x gradient_accumulation_steps"},
      {"training.gradient_accumulation_steps", kInteger, 4, "factor of the step's size, see batch_size"},
      {"training.micro_batch_size", kInteger, nullptr,
       "sequences held in memory at a time; null: batch_size; changes rounding only"},
      {"training.learning_rate", kNumber, 3e-4, "peak learning rate"},
      {"training.min_lr", kNumber, 3e-5, "learning rate at the end of the decay"},
      {"training.warmup_tokens", kNumber, 0.5, "linear warm-up, in billions of tokens"},
      {"training.warmup_steps", kInteger, nullptr, "replaces warmup_tokens"},
      {"training.max_tokens", kNumber, 10.0, "length of the run, in billions of tokens"},
      {"training.max_steps", kInteger, nullptr, "replaces max_tokens"},
      {"training.lr_decay_style", kString, "cosine", "cosine, linear, constant or wsd (warm-up, stable, decay)"},
      {"training.decay_fraction", kNumber, 0.2, "wsd: part of max_steps in which the rate falls"},
      {"training.weight_decay", kNumber, 0.1, "decoupled; matrices of linear layers only"},
      {"training.beta1", kNumber, 0.9, "AdamW: decay of the gradient's mean"},
      {"training.beta2", kNumber, 0.95, "AdamW: decay of the squared gradient's mean"},
      {"training.adam_eps", kNumber, 1e-8, "AdamW: added to the root of the squared gradient's mean"},
      {"training.grad_clip", kNumber, 1.0, "largest global norm of the gradient; 0: no clipping"},
      {"training.dtype", kString, "auto",
       "float32, bfloat16 (autocast, parameters stay float32), auto: bfloat16 where the device has it"},
      {"training.gradient_checkpointing", kBoolean, false, "recompute blocks in the backward pass to save memory"},
      {"training.cuda_graph", kBoolean, false,
       "run a micro-batch's forward and backward pass as one CUDA graph; not with data.document_mask"},
      {"training.max_skipped_steps", kInteger, 10,
       "stop after so many steps in a row with a loss or gradient that is not finite"},

      {"checkpointing.checkpoint_dir", kString, "./checkpoints", "the run's folder when --output is not given"},
      {"checkpointing.checkpoint_interval", kInteger, 1000, "steps between checkpoints; 0: at the end only"},
      {"checkpointing.keep_last", kInteger, nullptr, "how many checkpoints to keep; null: all"},

      {"logging.log_interval", kInteger, 10, "steps between progress lines (metrics.jsonl holds every step)"},
      {"logging.eval_interval", kInteger, 500, "steps between validations; 0: at the end only"},
      {"logging.eval_tokens", kInteger, 10485760, "target tokens of one validation, at most the whole split"},
      {"logging.tensorboard", kBoolean, true, "write TensorBoard event files"},

      {"system.seed", kInteger, 42, "initialisation and data order"},
      {"system.device", kString, "auto", "auto, cpu, cuda or cuda:N"},
      {"system.threads", kInteger, nullptr, "CPU threads; null: LibTorch's choice; --threads goes before it"},

      {"distributed.bucket_mb", kNumber, 25.0, "MiB of gradients that ranks sum at a time, during the backward pass"},
      {"distributed.shard_optimizer", kBoolean, false, "each rank holds its part of AdamW's moments only"},
      {"distributed.timeout", kNumber, 600.0, "seconds that a rank waits for another one before all end"},
      {"distributed.check_interval", kInteger, 0,
       "steps between checks that all ranks hold the same parameters; 0: none"},
  };
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
  KeyList keys = own_keys();
  for (Key key : models::model_keys()) {
    key.path = "model.config_overrides." + key.path;
    keys.push_back(std::move(key));
  }
  for (const char* path : kWithoutMeaning) keys.push_back({path, kString, nullptr, ""});
  return keys;
}

}  // namespace

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
