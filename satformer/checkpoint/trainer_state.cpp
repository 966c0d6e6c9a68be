#include "satformer/checkpoint/trainer_state.h"

#include "satformer/checkpoint/layout.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/io/json_fields.h"
#include "satformer/io/strict_json.h"

namespace satformer::checkpoint {
namespace {

nlohmann::json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// Nothing that is counted can be negative.
std::int64_t count(const JsonFields& fields, const char* key) {
  const std::int64_t value = fields.integer(key);
  require(value >= 0, "{}: {}: expected an integer from 0 on, got {}", fields.where(), key, value);
  return value;
}

}  // namespace

std::string format_trainer_state(const TrainerState& state, const std::string& version) {
  const nlohmann::json json = {{"version", version},
                               {"step", state.step},
                               {"samples", state.samples},
                               {"tokens", state.tokens},
                               {"skipped_steps", state.skipped_steps},
                               {"skipped_in_a_row", state.skipped_in_a_row},
                               {"train_loss", number_or_null(state.train_loss)},
                               {"val_loss", number_or_null(state.val_loss)},
                               {"val_step", state.val_step},
                               {"val_tokens", state.val_tokens},
                               {"best_val_loss", number_or_null(state.best_val_loss)},
                               {"data_fingerprint", state.data_fingerprint},
                               {"config", state.config}};
  return json.dump(1) + "\n";
}

TrainerState parse_trainer_state(const std::string& text, const std::string& source) {
  const nlohmann::json json = parse_strict_json(text, source);
  const JsonFields fields(json, source);
  TrainerState state;
  state.step = count(fields, "step");
  state.samples = count(fields, "samples");
  state.tokens = count(fields, "tokens");
  state.skipped_steps = count(fields, "skipped_steps");
  state.skipped_in_a_row = count(fields, "skipped_in_a_row");
  state.train_loss = fields.number_or_null("train_loss");
  state.val_loss = fields.number_or_null("val_loss");
  state.val_step = count(fields, "val_step");
  state.val_tokens = count(fields, "val_tokens");
  state.best_val_loss = fields.number_or_null("best_val_loss");
  state.data_fingerprint = fields.text("data_fingerprint");
  state.config = fields.object("config").json();
  return state;
}

TrainerState load_trainer_state(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / kTrainerFile;
  return parse_trainer_state(read_file(file), file.string());
}

}  // namespace satformer::checkpoint
