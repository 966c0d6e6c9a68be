// satformer ablate: how much the loss changes when a checkpoint's gates (or a ResFormer's lambdas) are replaced.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "apps/commands.h"
#include "apps/options.h"
#include "satformer/analysis/ablation/files.h"
#include "satformer/analysis/ablation/study.h"
#include "satformer/data/output_folder.h"
#include "satformer/runtime/device.h"

namespace satformer::apps {
namespace {

using analysis::AblationScope;
using analysis::InterventionMode;

struct AblateFlags {
  ModelFlags model;
  std::string output, json;
  std::int64_t listed = 10;
  bool overwrite = false, naive = false;
  analysis::AblationStudyOptions study;
};

constexpr InterventionMode kNamedModes[] = {InterventionMode::zero, InterventionMode::mean,
                                            InterventionMode::token_mean, InterventionMode::shuffle};
constexpr AblationScope kScopes[] = {AblationScope::all, AblationScope::layer, AblationScope::head,
                                     AblationScope::category};

// "zero", "scale=0.5", ...; what is wrong with the text, or nothing.
std::string read_rule(const std::string& text, analysis::InterventionRule& rule) {
  for (const InterventionMode mode : kNamedModes) {
    if (text != analysis::mode_name(mode)) continue;
    rule.mode = mode;
    return "";
  }
  constexpr std::string_view kScale = "scale=";
  double scale = 0.0;
  if (!text.starts_with(kScale) || !CLI::detail::lexical_cast(text.substr(kScale.size()), scale) ||
      !(std::abs(scale) <= std::numeric_limits<float>::max())) {
    return "must be zero, mean, token-mean, shuffle or scale=X with X a float32, got " + text;
  }
  rule.mode = InterventionMode::scale;
  rule.scale = scale;
  return "";
}

void print_report(const analysis::AblationReport& report, std::int64_t listed) {
  fmt::print("intact: loss {:.4f}, perplexity {:.2f}, {} tokens of {}\n", report.intact.loss, report.intact.perplexity,
             report.intact.tokens, report.data.name);
  if (report.calibration)
    fmt::print("means from {} tokens of {}\n", report.calibration->tokens, report.calibration->name);
  fmt::print("{:>4}  {:<24} {:>9} {:>11}  {}\n", "rank", rule_text(report.rule), "loss", "change", "interval");
  for (const analysis::AblationRow& row : report.ranked()) {
    if (row.rank > listed) break;
    const auto& [change, interval] = row.change;
    fmt::print("{:>4}  {:<24} {:>9.4f} {:>+11.6f}  {}\n", row.rank, ablation_name(row), row.loss, change,
               interval ? fmt::format("[{:+.6f}, {:+.6f}]", interval->low, interval->high) : "-");
  }
  const auto rows = static_cast<std::int64_t>(report.ablations.size());
  if (rows > listed) fmt::print("and {} more\n", rows - listed);
  fmt::print("{}\n", report.finding);
}

void ablate_command(const AblateFlags& flags) {
  if (!flags.output.empty()) check_report_output(flags.output, flags.overwrite, "ablate", "ablation.json");
  analysis::AblationStudyOptions study = flags.study;
  study.source.split = flags.model.split;
  study.stream = stream_options(flags.model, select_device(flags.model.device));
  study.ablation.reuse = !flags.naive;
  study.ablation.rule.seed = study.bootstrap.seed;
  const analysis::AblationReport report = analysis::study_ablation(flags.model.checkpoint, study);
  if (!flags.output.empty()) {
    data::OutputFolder folder(flags.output);
    analysis::write_ablation(report, folder.path());
    folder.commit();
  }
  print_report(report, flags.listed);
  write_json_result(flags.json, to_json(report));
}

void add_what(CLI::App& command, AblateFlags& flags) {
  add_model_options(command, flags.model);
  command
      .add_option_function<std::string>(
          "--mode", [&flags](const std::string& text) { read_rule(text, flags.study.ablation.rule); },
          "What takes the gates' place: zero, mean, token-mean, shuffle or scale=X")
      ->type_name("MODE")
      ->required()
      ->check(
          [](const std::string& text) {
            analysis::InterventionRule rule;
            return read_rule(text, rule);
          },
          "", "");
  std::vector<std::pair<std::string, AblationScope>> scopes;
  for (const AblationScope scope : kScopes) scopes.emplace_back(analysis::scope_name(scope), scope);
  command
      .add_option("--scope", flags.study.scope, "All gates at once, or one layer, head or category of tokens at a time")
      ->transform(CLI::CheckedTransformer(scopes).description(""))
      ->type_name("all|layer|head|category")
      ->default_str("all");
  add_token_options(command, flags.study.source, flags.study.max_tokens);
  command
      .add_option("--calibration-tokens", flags.study.calibration_tokens,
                  "Tokens of the other split that the means are taken over")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--output", flags.output, "Folder to make for JSON, CSV and plots")->type_name("DIR");
  command.add_flag("--overwrite", flags.overwrite, "Replace the folder of an earlier ablation");
}

void add_how(CLI::App& command, AblateFlags& flags) {
  command.add_option("--list", flags.listed, "Lines to print, by rank")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command.add_option("--confidence", flags.study.bootstrap.confidence, "Of the bootstrap's intervals, in (0, 1)")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1.0 - 1e-6));
  command.add_option("--resamples", flags.study.bootstrap.resamples, "Of the bootstrap")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{10}, std::int64_t{100'000}));
  command.add_option("--seed", flags.study.bootstrap.seed, "Of the bootstrap and of shuffle")->capture_default_str();
  command.add_flag("--no-reuse", flags.naive, "Every ablation a whole pass: the same numbers, slower");
}

}  // namespace

void add_ablate(CLI::App& app) {
  const auto flags = std::make_shared<AblateFlags>();
  CLI::App* command = app.add_subcommand("ablate", "What the loss loses when gates are removed or replaced");
  add_what(*command, *flags);
  add_how(*command, *flags);
  add_threads_option(*command);
  add_json_option(*command, flags->json);
  command->callback([flags] { ablate_command(*flags); });
}

}  // namespace satformer::apps
