#include "satformer/eval/checkpoint_data.h"

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/trainer_state.h"

namespace satformer::eval {
namespace {

train::DataConfig trained_with(const std::filesystem::path& checkpoint, const models::ModelConfig& model) {
  const std::filesystem::path trainer = checkpoint / checkpoint::kTrainerFile;
  if (std::filesystem::exists(trainer)) {
    return train::parse_run_config(checkpoint::load_trainer_state(checkpoint).config.dump(), trainer.string()).data;
  }
  train::DataConfig data;
  data.data_dir.clear();  // not known
  data.seq_length = model.max_position_embeddings;
  return data;
}

}  // namespace

train::DataConfig data_config(const std::filesystem::path& checkpoint, const models::ModelConfig& model,
                              const SplitOptions& split) {
  train::DataConfig data = trained_with(checkpoint, model);
  if (!split.folder.empty()) data.data_dir = split.folder;
  if (split.seq_length > 0) data.seq_length = split.seq_length;
  return data;
}

const std::string& prefix_of(const train::DataConfig& data, const std::string& split) {
  return split == "val" ? data.val_prefix : data.train_prefix;
}

}  // namespace satformer::eval
