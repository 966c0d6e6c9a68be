#include "satformer/analysis/study/run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/checkpoint/trainer_state.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/models/language_model.h"
#include "satformer/run/run_config.h"
#include "satformer/runtime/version.h"

namespace satformer::analysis {
namespace {

namespace fs = std::filesystem;

// The studies of several models over the same tokens, and their progress.
class Studies {
 public:
  Studies(const TokenSource& source, const CheckpointStudyOptions& options, std::int64_t models)
      : options_(options), stream_(source.stream(stream_options(), options.max_tokens)) {
    progress_.emplace("gates", "tokens", stream_.tokens() * models);
  }

  ModelStudy study(models::LanguageModel& model, const std::string& what, StudyParts parts) {
    what_ = what;
    model.to(options_.stream.device);
    ModelStudy result = study_model(model, stream_, options_.study, parts);
    done_ += stream_.tokens();
    return result;
  }
  void finish() { progress_->finish(); }
  const TokenStream& stream() const { return stream_; }

 private:
  StreamOptions stream_options() {
    StreamOptions options = options_.stream;
    options.max_blocks = options_.study.summary.bootstrap.max_blocks;
    options.progress = [this](std::int64_t tokens) { progress_->update(done_ + tokens, what_); };
    return options;
  }

  const CheckpointStudyOptions& options_;
  TokenStream stream_;
  std::optional<Progress> progress_;
  std::int64_t done_ = 0;  // tokens of finished studies
  std::string what_;
};

std::vector<fs::path> checkpoints_of(const fs::path& run) {
  std::vector<fs::path> checkpoints = checkpoint::list(run);
  require(!checkpoints.empty(), "--every-checkpoint: {} is no run (with checkpoints/step_NNNNNNNN)", run.string());
  return checkpoints;
}

GatesReport::Checkpoint describe(const fs::path& checkpoint, models::LanguageModel& model,
                                 const std::optional<checkpoint::TrainerState>& state) {
  GatesReport::Checkpoint result{.path = checkpoint.string(),
                                 .architecture = model.config().architecture,
                                 .num_parameters = model.num_parameters(),
                                 .config = models::model_config_to_json(model.config()),
                                 .step = {},
                                 .tokens = {}};
  if (state) {
    result.step = state->step;
    result.tokens = state->tokens;
  }
  return result;
}

GatesReport::Data describe(const TokenSource& source, const TokenStream& stream) {
  const StreamOptions& options = stream.options();
  return {.name = source.name,
          .tokens = stream.tokens(),
          .windows = stream.windows(),
          .seq_length = options.batch.seq_length,
          .document_mask = options.batch.document_mask,
          .dtype = options.dtype == c10::ScalarType::BFloat16 ? "bfloat16" : "float32"};
}

GatesReport::Initialization study_initial(const models::ModelConfig& config, std::optional<std::uint64_t> seed,
                                          Studies& studies) {
  const auto untrained = models::make_model(config, seed.value_or(0));
  untrained->eval();
  return {studies.study(*untrained, "at initialisation", StudyParts::numbers), seed.value_or(0), seed.has_value()};
}

// The initial model, then the run's checkpoints; `studied` is that of the report's own model.
std::vector<GatesReport::Point> study_dynamics(const std::vector<fs::path>& checkpoints, const fs::path& studied,
                                               const GatesReport& report, Studies& studies) {
  std::vector<GatesReport::Point> points;
  if (report.initialization) points.push_back(point_of(*report.initialization, 0, 0));
  for (const fs::path& path : checkpoints) {
    const checkpoint::TrainerState state = checkpoint::load_trainer_state(path);
    if (fs::equivalent(path, studied)) {
      points.push_back(point_of(report.model, state.step, state.tokens));
      continue;
    }
    const auto model = checkpoint::load_model(path);
    points.push_back(
        point_of(studies.study(*model, path.filename().string(), StudyParts::numbers), state.step, state.tokens));
  }
  return points;
}

std::uint64_t seed_of(const checkpoint::TrainerState& state, const fs::path& checkpoint) {
  return train::parse_run_config(state.config.dump(), (checkpoint / checkpoint::kTrainerFile).string()).system.seed;
}

}  // namespace

GatesReport study_checkpoint(const fs::path& path, const CheckpointStudyOptions& options) {
  const fs::path checkpoint = checkpoint::find(path);
  const auto model = checkpoint::load_model(checkpoint);
  require(has_early_access(model->config()),
          "{}: this {} reaches early representations in no layer: there is nothing to tell", checkpoint.string(),
          model->config().architecture);
  const TokenSource source = open_token_source(options.source, checkpoint, model->config());
  const std::vector<fs::path> checkpoints = options.every_checkpoint ? checkpoints_of(path) : std::vector<fs::path>();
  std::optional<checkpoint::TrainerState> state;
  std::optional<std::uint64_t> seed;
  if (fs::exists(checkpoint / checkpoint::kTrainerFile)) {
    state = checkpoint::load_trainer_state(checkpoint);
    seed = seed_of(*state, checkpoint);
  }
  const std::size_t models = std::max<std::size_t>(1, checkpoints.size()) + (options.initialization ? 1 : 0);
  Studies studies(source, options, static_cast<std::int64_t>(models));

  GatesReport report;
  report.version = version();
  if (options.initialization) report.initialization = study_initial(model->config(), seed, studies);
  report.model = studies.study(*model, "", StudyParts::all);
  report.checkpoint = describe(checkpoint, *model, state);
  report.data = describe(source, studies.stream());
  if (!checkpoints.empty()) report.dynamics = study_dynamics(checkpoints, checkpoint, report, studies);
  report.findings = findings_of(report);
  studies.finish();
  return report;
}

}  // namespace satformer::analysis
