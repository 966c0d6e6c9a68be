// satformer ablate: how much the loss changes when a checkpoint's gates (or a ResFormer's lambdas) are replaced.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "apps/commands.h"
#include "apps/options.h"
#include "apps/token_source.h"
#include "satformer/analysis/ablation.h"
#include "satformer/analysis/ablation_report.h"
#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/data/output_folder.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"
#include "satformer/runtime/version.h"

namespace satformer::apps {
namespace {

namespace fs = std::filesystem;
using analysis::AblationScope;
using analysis::InterventionMode;
using nlohmann::json;

struct AblateFlags {
  TokenSourceFlags source;
  std::string checkpoint, output, dtype = "auto", device = "auto", json;
  std::int64_t sequences = 0, calibration_tokens = 1 << 16, listed = 10;
  AblationScope scope = AblationScope::all;
  analysis::AblationOptions ablation;
  analysis::BootstrapOptions bootstrap;
  bool overwrite = false, naive = false;
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

std::string rule_text(const analysis::InterventionRule& rule) {
  const std::string name(analysis::mode_name(rule.mode));
  return rule.mode == InterventionMode::scale ? fmt::format("{}={}", name, rule.scale) : name;
}

// Both streams of an ablation, and the progress of everything that runs over them.
class Study {
 public:
  Study(const AblateFlags& flags, const fs::path& checkpoint, models::LanguageModel& model)
      : flags_(flags),
        model_(model),
        device_(select_device(flags.device)),
        source_(open_token_source(flags.source, checkpoint, model.config())) {
    model.to(device_);
  }

  json document(const fs::path& checkpoint);

 private:
  analysis::TokenStream stream(const TokenSource& source, std::int64_t max_tokens, Progress& progress) const {
    analysis::StreamOptions options = stream_options(source, max_tokens);
    options.sequences = flags_.sequences;
    options.device = device_;
    options.dtype = select_dtype(flags_.dtype, device_, "--dtype");
    options.max_blocks = flags_.bootstrap.max_blocks;
    options.progress = [&progress](std::int64_t tokens) { progress.update(tokens); };
    return {*source.dataset, source.classifier ? &*source.classifier : nullptr, options};
  }
  std::optional<analysis::GateMeans> calibrate(const fs::path& checkpoint, json& calibration) const;
  json ablations(const std::optional<analysis::GateMeans>& means);

  const AblateFlags& flags_;
  models::LanguageModel& model_;
  c10::Device device_;
  TokenSource source_;
};

// Over the other split: the means must not have seen the tokens that judge them.
std::optional<analysis::GateMeans> Study::calibrate(const fs::path& checkpoint, json& calibration) const {
  const InterventionMode mode = flags_.ablation.rule.mode;
  if (mode != InterventionMode::mean && mode != InterventionMode::token_mean) return std::nullopt;
  TokenSourceFlags other = flags_.source;
  other.split = flags_.source.split == "val" ? "train" : "val";
  const TokenSource source = open_token_source(other, checkpoint, model_.config());
  Progress progress("calibrate", "tokens", std::min(flags_.calibration_tokens, source.dataset->num_tokens() - 1));
  const analysis::TokenStream tokens = stream(source, flags_.calibration_tokens, progress);
  analysis::GateMeans means = analysis::calibrate_gates(model_, tokens, mode == InterventionMode::token_mean);
  progress.finish();
  calibration = {{"name", source.name}, {"split", other.split}, {"tokens", means.count}};
  return means;
}

json Study::ablations(const std::optional<analysis::GateMeans>& means) {
  const analysis::TokenCategories* categories = source_.classifier ? &source_.classifier->categories() : nullptr;
  std::vector<analysis::GateSelection> selections = analysis::selections(model_.config(), flags_.scope, categories);
  const auto begin = std::chrono::steady_clock::now();
  Progress progress("ablate", "tokens", source_.dataset->num_tokens() - 1);
  const analysis::TokenStream tokens = stream(source_, flags_.source.max_tokens, progress);
  const analysis::Ablation result =
      analysis::ablate(model_, tokens, std::move(selections), means ? &*means : nullptr, flags_.ablation);
  progress.finish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  json document = analysis::ablation_json(result, categories, flags_.bootstrap);
  document["seconds"] = seconds.count();
  document["data"] = {{"name", source_.name},
                      {"split", flags_.source.split},
                      {"tokens", tokens.tokens()},
                      {"windows", tokens.windows()},
                      {"blocks", tokens.blocks()},
                      {"seq_length", source_.batch.seq_length},
                      {"document_mask", source_.batch.document_mask}};
  return document;
}

json Study::document(const fs::path& checkpoint) {
  json calibration;
  const auto means = calibrate(checkpoint, calibration);
  json document = ablations(means);
  document.update({{"schema", "satformer.ablation/1"},
                   {"satformer", version()},
                   {"checkpoint", checkpoint.string()},
                   {"architecture", model_.config().architecture},
                   {"mode", rule_text(flags_.ablation.rule)},
                   {"scope", analysis::scope_name(flags_.scope)},
                   {"calibration", calibration},
                   {"reuse", flags_.ablation.reuse},
                   {"bootstrap",
                    {{"confidence", flags_.bootstrap.confidence},
                     {"resamples", flags_.bootstrap.resamples},
                     {"seed", flags_.bootstrap.seed}}}});
  document["finding"] = analysis::ablation_finding(document);
  return document;
}

void print_document(const json& document, std::int64_t listed) {
  const auto number = [](const json& value) { return value.is_number() ? value.get<double>() : NAN; };
  fmt::print("intact: loss {:.4f}, perplexity {:.2f}, {} tokens of {}\n", number(document["intact"]["loss"]),
             number(document["intact"]["perplexity"]), document["intact"]["tokens"].get<std::int64_t>(),
             document["data"]["name"].get<std::string>());
  if (!document["calibration"].is_null()) {
    fmt::print("means from {} tokens of {}\n", document["calibration"]["tokens"].get<std::int64_t>(),
               document["calibration"]["name"].get<std::string>());
  }
  fmt::print("{:>4}  {:<24} {:>9} {:>11}  {}\n", "rank", document["mode"].get<std::string>(), "loss", "change",
             "interval");
  const std::vector<json> rows = analysis::ranked(document);
  for (std::size_t i = 0; i < rows.size() && i < static_cast<std::size_t>(listed); ++i) {
    const json& change = rows[i]["change"];
    const std::string interval = change["low"].is_null()
                                     ? "-"
                                     : fmt::format("[{:+.6f}, {:+.6f}]", number(change["low"]), number(change["high"]));
    fmt::print("{:>4}  {:<24} {:>9.4f} {:>+11.6f}  {}\n", rows[i]["rank"].get<int>(), analysis::ablation_name(rows[i]),
               number(rows[i]["loss"]), number(change["value"]), interval);
  }
  if (rows.size() > static_cast<std::size_t>(listed)) fmt::print("and {} more\n", rows.size() - listed);
  fmt::print("{}\n", document["finding"].get<std::string>());
}

void ablate_command(const AblateFlags& flags) {
  if (!flags.output.empty()) check_report_output(flags.output, flags.overwrite, "ablate", "ablation.json");
  const fs::path checkpoint = checkpoint::find(flags.checkpoint);
  const auto model = checkpoint::load_model(checkpoint);
  const json document = Study(flags, checkpoint, *model).document(checkpoint);
  if (!flags.output.empty()) {
    data::OutputFolder folder(flags.output);
    analysis::write_ablation(document, folder.path());
    folder.commit();
  }
  print_document(document, flags.listed);
  write_json_result(flags.json, document);
}

void add_what(CLI::App& command, AblateFlags& flags) {
  command.add_option("checkpoint", flags.checkpoint, "A checkpoint's folder, or a run's (its newest checkpoint)")
      ->type_name("CHECKPOINT")
      ->required();
  command
      .add_option_function<std::string>(
          "--mode", [&flags](const std::string& text) { read_rule(text, flags.ablation.rule); },
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
  command.add_option("--scope", flags.scope, "All gates at once, or one layer, head or category of tokens at a time")
      ->transform(CLI::CheckedTransformer(scopes).description(""))
      ->type_name("all|layer|head|category")
      ->default_str("all");
  add_token_source_options(command, flags.source);
  command
      .add_option("--calibration-tokens", flags.calibration_tokens,
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
  command.add_option("--confidence", flags.bootstrap.confidence, "Of the bootstrap's intervals, in (0, 1)")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1.0 - 1e-6));
  command.add_option("--resamples", flags.bootstrap.resamples, "Of the bootstrap")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{10}, std::int64_t{100'000}));
  command.add_option("--seed", flags.bootstrap.seed, "Of the bootstrap and of shuffle")->capture_default_str();
  command.add_flag("--no-reuse", flags.naive, "Every ablation a whole pass: the same numbers, slower");
  command.add_option("--batch", flags.sequences, "Windows in memory at a time [4096 tokens' worth]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command.add_option("--dtype", flags.dtype, "auto, float32 or bfloat16")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}));
  command.add_option("--device", flags.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
}

}  // namespace

void add_ablate(CLI::App& app) {
  const auto flags = std::make_shared<AblateFlags>();
  CLI::App* command = app.add_subcommand("ablate", "What the loss loses when gates are removed or replaced");
  add_what(*command, *flags);
  add_how(*command, *flags);
  add_threads_option(*command);
  add_json_option(*command, flags->json);
  command->callback([flags] {
    flags->ablation.reuse = !flags->naive;
    flags->ablation.rule.seed = flags->bootstrap.seed;
    ablate_command(*flags);
  });
}

}  // namespace satformer::apps
