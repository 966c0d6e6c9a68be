#include "apps/gates_study.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "satformer/analysis/gate_report.h"
#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/run/run_config.h"
#include "satformer/runtime/precision.h"
#include "satformer/runtime/version.h"

namespace satformer::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The numbers of the model, of the model before training and of a run's other checkpoints, over the same tokens.
class Studies {
 public:
  Studies(const GatesFlags& flags, const fs::path& checkpoint, const TokenSource& source, c10::Device device)
      : flags_(flags), checkpoint_(checkpoint), device_(device) {
    if (flags.every_checkpoint) {
      checkpoints_ = checkpoint::list(flags.checkpoint);
      require(!checkpoints_.empty(), "--every-checkpoint: {} is no run (with checkpoints/step_NNNNNNNN)",
              flags.checkpoint);
    }
    if (fs::exists(checkpoint / checkpoint::kTrainerFile)) {
      state_ = checkpoint::load_trainer_state(checkpoint);
      seed_ =
          train::parse_run_config(state_->config.dump(), (checkpoint / checkpoint::kTrainerFile).string()).system.seed;
    }
    analysis::StreamOptions options = stream_options(source, flags.source.max_tokens);
    options.sequences = flags.sequences;
    options.device = device;
    options.dtype = select_dtype(flags.dtype, device, "--dtype");
    options.max_blocks = flags.study.json.bootstrap.max_blocks;
    options.progress = [this](std::int64_t tokens) { progress_->update(done_ + tokens, what_); };
    stream_.emplace(*source.dataset, source.classifier ? &*source.classifier : nullptr, options);
    const auto others = static_cast<std::int64_t>(checkpoints_.empty() ? 0 : checkpoints_.size() - 1);
    progress_.emplace("gates", "tokens", stream_->tokens() * (others + (flags.no_initial ? 1 : 2)));
  }

  json document(models::LanguageModel& model, const TokenSource& source);

 private:
  json study(models::LanguageModel& model, const std::string& what, analysis::StudyParts parts) {
    what_ = what;
    model.to(device_);
    json result = analysis::study_model(model, *stream_, flags_.study, parts);
    done_ += stream_->tokens();
    return result;
  }
  json checkpoint_json(models::LanguageModel& model) const;
  json data_json(const TokenSource& source) const;
  json dynamics(const json& own, const json& initial);

  const GatesFlags& flags_;
  fs::path checkpoint_;
  c10::Device device_;
  std::vector<fs::path> checkpoints_;
  std::optional<checkpoint::TrainerState> state_;
  std::uint64_t seed_ = 0;
  std::optional<analysis::TokenStream> stream_;
  std::optional<Progress> progress_;
  std::int64_t done_ = 0;  // tokens of finished passes
  std::string what_;
};

json Studies::checkpoint_json(models::LanguageModel& model) const {
  json object = {{"path", checkpoint_.string()},
                 {"architecture", model.config().architecture},
                 {"num_parameters", model.num_parameters()},
                 {"config", models::model_config_to_json(model.config())},
                 {"step", nullptr},
                 {"tokens", nullptr}};
  if (state_) object.update({{"step", state_->step}, {"tokens", state_->tokens}});
  return object;
}

json Studies::data_json(const TokenSource& source) const {
  const analysis::StreamOptions& options = stream_->options();
  return {{"name", source.name},
          {"tokens", stream_->tokens()},
          {"windows", stream_->windows()},
          {"seq_length", options.batch.seq_length},
          {"document_mask", options.batch.document_mask},
          {"dtype", options.dtype == c10::ScalarType::BFloat16 ? "bfloat16" : "float32"}};
}

json Studies::dynamics(const json& own, const json& initial) {
  json points = json::array();
  const auto add = [&points](std::int64_t step, std::int64_t tokens, json numbers) {
    numbers = analysis::for_dynamics(std::move(numbers));
    numbers.update({{"step", step}, {"tokens", tokens}});
    points.push_back(std::move(numbers));
  };
  if (!initial.is_null()) add(0, 0, initial);
  for (const fs::path& path : checkpoints_) {
    const checkpoint::TrainerState state = checkpoint::load_trainer_state(path);
    if (fs::equivalent(path, checkpoint_)) {
      add(state.step, state.tokens, own);
    } else {
      const auto model = checkpoint::load_model(path);
      add(state.step, state.tokens, study(*model, path.filename().string(), analysis::StudyParts::numbers));
    }
  }
  return points;
}

json Studies::document(models::LanguageModel& model, const TokenSource& source) {
  json initial;
  if (!flags_.no_initial) {
    const auto untrained = models::make_model(model.config(), seed_);
    untrained->eval();
    initial = study(*untrained, "at initialisation", analysis::StudyParts::numbers);
  }
  json own = study(model, "", analysis::StudyParts::all);
  json document = {{"schema", "satformer.gates/1"},
                   {"satformer", version()},
                   {"checkpoint", checkpoint_json(model)},
                   {"data", data_json(source)},
                   {"gates", own["gates"]},
                   {"access", own["access"]},
                   {"initialization", initial},
                   {"dynamics", checkpoints_.empty() ? json() : dynamics(own, initial)}};
  if (!initial.is_null()) {
    document["initialization"]["seed"] = seed_;
    document["initialization"]["seed_known"] = state_.has_value();
  }
  document["findings"] = analysis::findings(document);
  progress_->finish();
  return document;
}

}  // namespace

json make_gates_document(const GatesFlags& flags, const fs::path& checkpoint, models::LanguageModel& model,
                         const TokenSource& source, c10::Device device) {
  return Studies(flags, checkpoint, source, device).document(model, source);
}

}  // namespace satformer::apps
