#include "satformer/train/validator.h"

#include <fmt/format.h>

#include "satformer/data/window.h"

namespace satformer::train {

Validator::Validator(const RunConfig& config, c10::Device device, c10::ScalarType dtype, distributed::World& world)
    : dataset_(data::TokenDataset::open(config.data.data_dir, config.data.val_prefix,
                                        {.vocab_size = config.model.vocab_size, .verify = config.data.verify_shards})) {
  const DataConfig& data = config.data;
  data::require_window(fmt::format("the validation split ({}/{}*.bin)", data.data_dir.string(), data.val_prefix),
                       dataset_.num_tokens(), data.seq_length);
  options_.batch = batch_options(data, config.model);
  options_.max_targets = config.logging.eval_tokens;
  options_.device = device;
  options_.dtype = dtype;
  options_.world = &world;
}

eval::LossTotal Validator::run(models::LanguageModel& model) const {
  model.eval();
  const eval::LossTotal total = eval::evaluate(model, dataset_, options_);
  model.train();
  return total;
}

std::string Validator::fingerprint() const { return fmt::format("{:016x}", dataset_.fingerprint()); }

}  // namespace satformer::train
