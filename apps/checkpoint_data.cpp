#include "apps/checkpoint_data.h"

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/trainer_state.h"

namespace satformer::apps {

train::DataConfig data_config(const std::filesystem::path& checkpoint, const models::ModelConfig& model) {
  const std::filesystem::path trainer = checkpoint / checkpoint::kTrainerFile;
  if (std::filesystem::exists(trainer)) {
    return train::parse_run_config(checkpoint::load_trainer_state(checkpoint).config.dump(), trainer.string()).data;
  }
  train::DataConfig data;
  data.data_dir.clear();  // not known
  data.seq_length = model.max_position_embeddings;
  return data;
}

}  // namespace satformer::apps
