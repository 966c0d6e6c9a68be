#include "satformer/checkpoint/load.h"

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/manifest.h"
#include "satformer/checkpoint/parameters.h"
#include "satformer/io/files.h"
#include "satformer/runtime/load_tensors.h"
#include "satformer/runtime/safetensors.h"

namespace satformer::checkpoint {
namespace {

void load_parameters(const std::filesystem::path& checkpoint, const models::LanguageModel& model) {
  const std::filesystem::path file = checkpoint / kModelFile;
  optim::copy_tensors(parameter_map(model), read_safetensors(file).tensors, file.string());
}

}  // namespace

std::shared_ptr<models::LanguageModel> load_model(const std::filesystem::path& path) {
  const std::filesystem::path checkpoint = find(path);
  verify_manifest(checkpoint);
  const std::filesystem::path config = checkpoint / kConfigFile;
  auto model = models::make_uninitialized_model(models::parse_model_config(read_file(config), config.string()));
  load_parameters(checkpoint, *model);
  model->eval();
  return model;
}

TrainerState restore(const std::filesystem::path& checkpoint, models::LanguageModel& model, optim::AdamW& optimizer,
                     const std::function<void(const TrainerState&)>& accept) {
  verify_manifest(checkpoint);
  TrainerState state = load_trainer_state(checkpoint);
  accept(state);
  const std::filesystem::path file = checkpoint / kOptimizerFile;
  optimizer.load_state(read_safetensors(file).tensors, file.string());
  load_parameters(checkpoint, model);
  return state;
}

}  // namespace satformer::checkpoint
