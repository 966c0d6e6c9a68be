#include "satformer/train/resume.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "satformer/checkpoint/layout.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/io/files.h"
#include "satformer/io/strict_json.h"

namespace satformer::train {
namespace {

std::filesystem::path chosen_by_user(const std::filesystem::path& output, const std::filesystem::path& from) {
  const std::filesystem::path checkpoint = checkpoint::find(from);
  if (!checkpoint::holds_run(output)) return checkpoint;
  const auto checkpoints = checkpoint::list(output);
  const bool inside = std::any_of(checkpoints.begin(), checkpoints.end(), [&](const std::filesystem::path& own) {
    return std::filesystem::equivalent(own, checkpoint);
  });
  require(inside, "{} already holds another run than {}; give another --output", output.string(), from.string());
  require(std::filesystem::equivalent(checkpoints.back(), checkpoint),
          "{} is later than {}: remove the later checkpoints, or give another --output", checkpoints.back().string(),
          checkpoint.string());
  return checkpoint;
}

void require_same(const std::string& key, const nlohmann::json& now, const nlohmann::json& then,
                  const std::filesystem::path& checkpoint) {
  if (now == then) return;
  fail("{} is {}, but {} was trained with {}; a resumed run must keep it", key, shortened(now), checkpoint.string(),
       shortened(then));
}

void require_same_model(const RunConfig& config, const std::filesystem::path& checkpoint) {
  const nlohmann::json now = models::model_config_to_json(config.model);
  const std::filesystem::path file = checkpoint / checkpoint::kConfigFile;
  const nlohmann::json then = parse_strict_json(read_file(file), file.string());
  if (!then.is_object()) fail("{}: expected an object, got {}", file.string(), shortened(then));
  const auto value = [](const nlohmann::json& object, const std::string& key) {
    return object.contains(key) ? object[key] : nlohmann::json();
  };
  require_same("the model's architecture", value(now, "model_type"), value(then, "model_type"), checkpoint);
  for (const auto& [key, unused] : now.items()) {
    require_same("model.config_overrides." + key, now[key], value(then, key), checkpoint);
  }
}

std::int64_t sequences_per_step(const nlohmann::json& values) {
  return get<std::int64_t>(values, "training.batch_size") *
         get<std::int64_t>(values, "training.gradient_accumulation_steps");
}

}  // namespace

std::optional<std::filesystem::path> choose_checkpoint(const std::filesystem::path& output,
                                                       const ResumeRequest& request) {
  if (!request.from.empty()) return chosen_by_user(output, request.from);
  if (!request.newest) {
    require(!checkpoint::holds_run(output),
            "{} already holds a run: continue it with --resume, or give another --output", output.string());
    return std::nullopt;
  }
  const auto checkpoints = checkpoint::list(output);
  if (!checkpoints.empty()) return checkpoints.back();
  note(fmt::format("{} holds no checkpoint yet: starting at step 0", output.string()));
  return std::nullopt;
}

void check_resume(const RunConfig& config, const std::string& data_fingerprint, const checkpoint::TrainerState& state,
                  const std::filesystem::path& checkpoint) {
  require_same_model(config, checkpoint);
  for (const char* key : {"data.seq_length", "data.document_mask", "data.end_of_text_id", "system.seed"}) {
    require_same(key, value_at(config.values, key), value_at(state.config, key), checkpoint);
  }
  require_same("training.batch_size x training.gradient_accumulation_steps", config.training.sequences_per_step(),
               sequences_per_step(state.config), checkpoint);
  require(data_fingerprint == state.data_fingerprint,
          "data.data_dir {}: its training data are not those of {} (fingerprint {}, expected {})",
          config.data.data_dir.string(), checkpoint.string(), data_fingerprint, state.data_fingerprint);
}

void note_changes(const RunConfig& config, const checkpoint::TrainerState& state) {
  std::vector<std::string> changes;
  for (const Key& key : run_config_keys()) {
    if (key.help.empty() || key.path.starts_with("model.")) continue;
    const nlohmann::json& now = value_at(config.values, key.path);
    const nlohmann::json& then = value_at(state.config, key.path);
    if (now != then) changes.push_back(fmt::format("{} {} -> {}", key.path, shortened(then), shortened(now)));
  }
  if (!changes.empty()) note(fmt::format("changed since the checkpoint: {}", fmt::join(changes, ", ")));
}

}  // namespace satformer::train
