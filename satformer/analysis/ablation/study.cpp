#include "satformer/analysis/ablation/study.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "satformer/analysis/ablation/calibration.h"
#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/core/progress.h"
#include "satformer/models/language_model.h"
#include "satformer/runtime/version.h"

namespace satformer::analysis {
namespace {

namespace fs = std::filesystem;

TokenStream stream_of(const TokenSource& source, const AblationStudyOptions& options, std::int64_t max_tokens,
                      Progress& progress) {
  StreamOptions stream = options.stream;
  stream.max_blocks = options.bootstrap.max_blocks;
  stream.progress = [&progress](std::int64_t tokens) { progress.update(tokens); };
  return source.stream(std::move(stream), max_tokens);
}

// Over the other split: the means must not have seen the tokens that judge them.
std::optional<GateMeans> calibrate(models::LanguageModel& model, const fs::path& checkpoint,
                                   const AblationStudyOptions& options, AblationReport& report) {
  const InterventionMode mode = options.ablation.rule.mode;
  if (mode != InterventionMode::mean && mode != InterventionMode::token_mean) return std::nullopt;
  TokenSourceOptions other = options.source;
  other.split.name = options.source.split.name == "val" ? "train" : "val";
  const TokenSource source = open_token_source(other, checkpoint, model.config());
  Progress progress("calibrate", "tokens", std::min(options.calibration_tokens, source.dataset->num_tokens() - 1));
  const TokenStream tokens = stream_of(source, options, options.calibration_tokens, progress);
  GateMeans means = calibrate_gates(model, tokens, mode == InterventionMode::token_mean);
  progress.finish();
  report.calibration = {source.name, other.split.name, means.count};
  return means;
}

void sweep(models::LanguageModel& model, const TokenSource& source, const GateMeans* means,
           const AblationStudyOptions& options, AblationReport& report) {
  const TokenCategories* categories = source.classifier ? &source.classifier->categories() : nullptr;
  std::vector<GateSelection> selected = selections(model.config(), options.scope, categories);
  const auto begin = std::chrono::steady_clock::now();
  Progress progress("ablate", "tokens", source.dataset->num_tokens() - 1);
  const TokenStream tokens = stream_of(source, options, options.max_tokens, progress);
  const Ablation result = ablate(model, tokens, std::move(selected), means, options.ablation);
  progress.finish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  add_numbers(report, result, categories, options.bootstrap);
  report.seconds = seconds.count();
  report.data = {.name = source.name,
                 .split = options.source.split.name,
                 .tokens = tokens.tokens(),
                 .windows = tokens.windows(),
                 .blocks = tokens.blocks(),
                 .seq_length = source.batch.seq_length,
                 .document_mask = source.batch.document_mask};
}

}  // namespace

AblationReport study_ablation(const fs::path& path, const AblationStudyOptions& options) {
  const fs::path checkpoint = checkpoint::find(path);
  const auto model = checkpoint::load_model(checkpoint);
  const TokenSource source = open_token_source(options.source, checkpoint, model->config());
  model->to(options.stream.device);
  AblationReport report;
  report.version = version();
  report.checkpoint = checkpoint.string();
  report.architecture = model->config().architecture;
  report.rule = options.ablation.rule;
  report.scope = options.scope;
  report.reuse = options.ablation.reuse;
  const std::optional<GateMeans> means = calibrate(*model, checkpoint, options, report);
  sweep(*model, source, means ? &*means : nullptr, options, report);
  report.finding = ablation_finding(report);
  return report;
}

}  // namespace satformer::analysis
