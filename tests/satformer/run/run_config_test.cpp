#include "satformer/run/run_config.h"

#include <set>

#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "tests/catch.h"
#include "tests/paths.h"

namespace {

using namespace satformer::train;
using Catch::Matchers::Contains;
using satformer::read_file;

// The shape of the published files: every key that they have.
constexpr const char* kPublished = R"({
  "model": {"source": "local_class", "module": "models/satformer/modeling_satformer",
    "class_name": "SATFormerForCausalLM", "config_module": "models/satformer/configuration_satformer",
    "config_class_name": "SATFormerConfig", "from_pretrained": false, "pretrained_path": null,
    "config_overrides": {"vocab_size": 32000, "hidden_size": 768, "num_hidden_layers": 11, "num_heads": 12,
      "num_kv_heads": null, "qkv_bias": false, "qk_norm": true, "window_size": null, "rope_theta": 10000.0,
      "max_position_embeddings": 4096, "hidden_ratio": 4, "intermediate_size": 3072, "hidden_act": "swish",
      "initializer_range": 0.02, "elementwise_affine": true, "norm_eps": 1e-6, "use_cache": false,
      "tie_word_embeddings": true, "fuse_norm": true, "fuse_swiglu": true, "fuse_cross_entropy": true,
      "fuse_linear_cross_entropy": false, "use_value_residual": true, "value_residual_lambda2_init": 0.5,
      "value_residual_last_k": null}},
  "tokenizer": {"name_or_path": "NousResearch/Llama-2-7b-hf", "save_with_model": true},
  "data": {"data_dir": "data", "train_prefix": "train", "val_prefix": "val", "seq_length": 4096},
  "training": {"batch_size": 64, "gradient_accumulation_steps": 1, "gradient_checkpointing": false,
    "learning_rate": 2e-3, "min_lr": 2e-4, "warmup_tokens": 0.05, "max_tokens": 5.0, "lr_decay_style": "cosine",
    "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "grad_clip": 1.0, "dtype": "bfloat16", "compile_model": false,
    "fused_adamw": true},
  "checkpointing": {"checkpoint_dir": "checkpoints/satformer/small", "checkpoint_interval": 2000,
    "save_final_model": true},
  "logging": {"log_interval": 10, "eval_interval": 500, "eval_iters": 100, "wandb_project": "experiments",
    "wandb_run_name": "satformer-small"},
  "system": {"seed": 42, "num_workers": 16, "prefetch_factor": 4, "pin_memory": true, "persistent_workers": true}
})";

constexpr const char* kSmall = R"({"model": {"architecture": "satformer", "config_overrides": {"hidden_size": 64,
  "num_heads": 4}}})";

RunConfig small(const std::vector<std::string>& overrides) { return parse_run_config(kSmall, "small.json", overrides); }

}  // namespace

TEST_CASE("a published configuration parses as it stands", "[train][config]") {
  const RunConfig config = parse_run_config(kPublished, "small.json");
  CHECK(config.model.architecture == "satformer");
  CHECK(config.model.hidden_size == 768);
  CHECK(config.model.num_kv_heads == 12);
  CHECK(config.data.seq_length == 4096);
  CHECK(config.training.sequences_per_step() == 64);
  CHECK(config.training.micro_batch_size == 64);
  // 5e9 and 0.05e9 tokens in steps of 64 x 4096.
  CHECK(config.training.schedule.max_steps == 19073);
  CHECK(config.training.schedule.warmup_steps == 190);
  CHECK(config.training.schedule.peak == 2e-3);
  CHECK(config.checkpointing.checkpoint_dir == "checkpoints/satformer/small");
  CHECK(config.system.seed == 42);
  const std::set<std::string> ignored(config.ignored.begin(), config.ignored.end());
  for (const char* key : {"model.source", "tokenizer.name_or_path", "training.compile_model", "training.fused_adamw",
                          "logging.eval_iters", "logging.wandb_project", "system.num_workers"}) {
    CHECK(ignored.count(key) == 1);
  }
}

TEST_CASE("run configuration defaults are the published ones", "[train][config]") {
  const RunConfig config = small({});
  CHECK(config.training.batch_size == 8);
  CHECK(config.training.gradient_accumulation_steps == 4);
  CHECK(config.training.schedule.peak == 3e-4);
  CHECK(config.training.schedule.minimum == 3e-5);
  CHECK(config.training.adamw.beta2 == 0.95);
  CHECK(config.training.grad_clip == 1.0);
  CHECK(config.training.schedule.max_steps == 152587);
  CHECK(config.logging.eval_tokens == 10485760);
  CHECK_FALSE(config.checkpointing.keep_last.has_value());
}

TEST_CASE("overrides replace any key, also by its last part", "[train][config]") {
  const RunConfig config = small({"training.learning_rate=1e-3", "max_steps=7", "warmup_steps=3", "hidden_size=32",
                                  "training.micro_batch_size=2", "lr_decay_style=wsd", "keep_last=2"});
  CHECK(config.training.schedule.peak == 1e-3);
  CHECK(config.training.schedule.max_steps == 7);
  CHECK(config.training.schedule.warmup_steps == 3);
  CHECK(config.training.schedule.decay == satformer::optim::Decay::wsd);
  CHECK(config.model.hidden_size == 32);
  CHECK(config.training.micro_batch_size == 2);
  CHECK(config.checkpointing.keep_last == 2);
}

TEST_CASE("a configuration that does not fit is named by file and key", "[train][config]") {
  CHECK_THROWS_WITH(small({"training.learning_rat=1"}), Contains("training.learning_rate"));
  CHECK_THROWS_WITH(small({"training.batch_size=0"}),
                    Contains("small.json: training.batch_size is 0, expected an integer of at least 1"));
  CHECK_THROWS_WITH(small({"training.batch_size=4294967296", "training.gradient_accumulation_steps=4294967296"}),
                    Contains("tokens a step, too many"));
  CHECK_THROWS_WITH(small({"training.decay_fraction=2"}), Contains("expected a number from 0 to 1"));
  CHECK_THROWS_WITH(small({"training.beta2=1"}), Contains("training.beta2 is 1") && Contains("below 1"));
  CHECK_THROWS_WITH(small({"training.lr_decay_style=cos"}), Contains("training.lr_decay_style is \"cos\""));
  CHECK_THROWS_WITH(small({"training.max_tokens=1e-9"}), Contains("training.max_tokens is less than one step"));
  CHECK_THROWS_WITH(small({"data.seq_length=4096"}), Contains("max_position_embeddings is 2048"));
  CHECK_THROWS_WITH(small({"model.class_name=TransformerForCausalLM"}), Contains("give one of them"));
  CHECK_THROWS_WITH(parse_run_config("{}", "empty.json"), Contains("empty.json: model.architecture is missing"));
  CHECK_NOTHROW(small({"model.class_name=SATFormerForCausalLM"}));
}

TEST_CASE("the keys' table is the one in the documentation", "[train][config]") {
  const std::string documentation = read_file(satformer::testing::source_dir() / "docs" / "configuration.md");
  CHECK_THAT(documentation, Contains(describe_run_config_keys()));
}
