#include "satformer/checkpoint/save.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/manifest.h"
#include "satformer/checkpoint/parameters.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/runtime/safetensors.h"
#include "satformer/runtime/version.h"

namespace satformer::checkpoint {
namespace {

void require_finite(const TensorMap& parameters, std::int64_t step) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : parameters) {
    require(at::isfinite(tensor).all().item<bool>(),
            "parameter {} is not finite after step {}: not saved; resume from the last checkpoint with a lower "
            "training.learning_rate",
            name, step);
  }
}

}  // namespace

std::filesystem::path save(const std::filesystem::path& run, const Contents& contents,
                           std::optional<std::int64_t> keep_last) {
  const TensorMap parameters = parameter_map(contents.model);
  require_finite(parameters, contents.state.step);
  const std::filesystem::path target = path_of_step(run, contents.state.step);
  StagedDirectory staged(target);
  write_safetensors(staged.path() / kModelFile, parameters, {{"format", "pt"}});
  write_safetensors(staged.path() / kOptimizerFile,
                    contents.optimizer_state != nullptr ? *contents.optimizer_state : contents.optimizer.state());
  write_file_atomically(staged.path() / kTrainerFile, format_trainer_state(contents.state, version()));
  write_file_atomically(staged.path() / kConfigFile,
                        models::model_config_to_json(contents.model.config()).dump(1) + "\n");
  if (!contents.tokenizer.empty()) write_file_atomically(staged.path() / kTokenizerFile, contents.tokenizer);
  write_manifest(staged.path());
  staged.commit();
  if (keep_last) remove_older(run, *keep_last);
  return target;
}

}  // namespace satformer::checkpoint
