#include "satformer/checkpoint/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>

#include "satformer/checkpoint/manifest.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/runtime/load_tensors.h"
#include "satformer/runtime/safetensors.h"
#include "satformer/runtime/version.h"

namespace satformer::train {
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kTrainerFile = "trainer.json";
constexpr const char* kConfigFile = "config.json";
constexpr const char* kTokenizerFile = "tokenizer.model";
constexpr const char* kRemovedSuffix = ".removed";

std::filesystem::path checkpoints_of(const std::filesystem::path& run) { return run / "checkpoints"; }

// "step_00000100"
bool is_step_name(const std::string& name) {
  constexpr std::string_view kPrefix = "step_";
  return name.size() >= kPrefix.size() + 8 && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

TensorMap parameter_map(const models::LanguageModel& model) {
  TensorMap map;
  for (const optim::NamedParameter& parameter : named_parameters(model)) map.emplace(parameter.name, parameter.tensor);
  return map;
}

void require_finite(const TensorMap& parameters, std::int64_t step) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : parameters) {
    require(at::isfinite(tensor).all().item<bool>(),
            "parameter {} is not finite after step {}: not saved; resume from the last checkpoint with a lower "
            "training.learning_rate",
            name, step);
  }
}

// A rename first, so that a kill in the middle does not leave half a checkpoint under its name.
void remove_checkpoint(const std::filesystem::path& checkpoint) {
  const std::string name = fmt::format(".{}{}", checkpoint.filename().string(), kRemovedSuffix);
  const std::filesystem::path hidden = checkpoint.parent_path() / name;
  std::filesystem::rename(checkpoint, hidden);
  std::filesystem::remove_all(hidden);
}

void remove_older(const std::filesystem::path& run, std::int64_t keep_last) {
  const std::vector<std::filesystem::path> checkpoints = list_checkpoints(run);
  const auto keep = static_cast<std::size_t>(keep_last);
  for (std::size_t i = 0; i + keep < checkpoints.size(); ++i) remove_checkpoint(checkpoints[i]);
}

void load_parameters(const std::filesystem::path& checkpoint, const models::LanguageModel& model) {
  const std::filesystem::path file = checkpoint / kModelFile;
  optim::copy_tensors(parameter_map(model), read_safetensors(file).tensors, file.string());
}

}  // namespace

std::vector<optim::NamedParameter> named_parameters(const models::LanguageModel& model) {
  const std::set<std::string> decayed = model.decayed_parameters();
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : model.named_parameters()) {
    parameters.push_back({item.key(), item.value(), decayed.contains(item.key())});
  }
  return parameters;
}

std::filesystem::path checkpoint_path(const std::filesystem::path& run, std::int64_t step) {
  return checkpoints_of(run) / fmt::format("step_{:08}", step);
}

std::filesystem::path save_checkpoint(const std::filesystem::path& run, const CheckpointContents& contents,
                                      std::optional<std::int64_t> keep_last) {
  const TensorMap parameters = parameter_map(contents.model);
  require_finite(parameters, contents.state.step);
  const std::filesystem::path target = checkpoint_path(run, contents.state.step);
  StagedDirectory staged(target);
  write_safetensors(staged.path() / kModelFile, parameters, {{"format", "pt"}});
  write_safetensors(staged.path() / kOptimizerFile,
                    contents.optimizer_state != nullptr ? *contents.optimizer_state : contents.optimizer.state());
  write_file_atomically(staged.path() / kTrainerFile, format_trainer_state(contents.state, version()));
  write_file_atomically(staged.path() / kConfigFile,
                        models::model_config_to_json(contents.model.config()).dump(1) + "\n");
  if (!contents.tokenizer.empty()) {
    write_file_atomically(staged.path() / kTokenizerFile, contents.tokenizer);
  }
  write_manifest(staged.path());
  staged.commit();
  if (keep_last) remove_older(run, *keep_last);
  return target;
}

void remove_stale_checkpoints(const std::filesystem::path& run) {
  const std::filesystem::path parent = checkpoints_of(run);
  StagedDirectory::remove_stale(run);
  StagedDirectory::remove_stale(parent);
  if (!std::filesystem::is_directory(parent)) return;
  std::vector<std::filesystem::path> removed;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".step_") && name.ends_with(kRemovedSuffix)) removed.push_back(entry.path());
  }
  for (const auto& path : removed) std::filesystem::remove_all(path);
}

std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> found;
  if (!std::filesystem::is_directory(checkpoints_of(run))) return found;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_of(run))) {
    if (entry.is_directory() && is_step_name(entry.path().filename().string())) found.push_back(entry.path());
  }
  // By number: names longer than eight digits sort after shorter ones.
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const std::string x = a.filename().string(), y = b.filename().string();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return found;
}

std::filesystem::path find_checkpoint(const std::filesystem::path& path) {
  require(std::filesystem::is_directory(path), "{}: no such folder; expected a checkpoint or a run", path.string());
  if (std::filesystem::exists(path / kManifestFile) || std::filesystem::exists(path / kModelFile)) return path;
  const auto checkpoints = list_checkpoints(path);
  require(!checkpoints.empty(), "{}: neither a checkpoint (with {}) nor a run (with checkpoints/step_NNNNNNNN)",
          path.string(), kManifestFile);
  return checkpoints.back();
}

std::shared_ptr<models::LanguageModel> load_model(const std::filesystem::path& path) {
  const std::filesystem::path checkpoint = find_checkpoint(path);
  verify_manifest(checkpoint);
  const std::filesystem::path config = checkpoint / kConfigFile;
  auto model = models::make_uninitialized_model(models::parse_model_config(read_file(config), config.string()));
  load_parameters(checkpoint, *model);
  model->eval();
  return model;
}

TrainerState load_trainer_state(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / kTrainerFile;
  return parse_trainer_state(read_file(file), file.string());
}

TrainerState load_checkpoint(const std::filesystem::path& checkpoint, models::LanguageModel& model,
                             optim::AdamW& optimizer, const std::function<void(const TrainerState&)>& accept) {
  verify_manifest(checkpoint);
  TrainerState state = load_trainer_state(checkpoint);
  accept(state);
  const std::filesystem::path file = checkpoint / kOptimizerFile;
  optimizer.load_state(read_safetensors(file).tensors, file.string());
  load_parameters(checkpoint, model);
  return state;
}

}  // namespace satformer::train
