// satformer gates: what the gates of a checkpoint learned (or how another architecture reads its depth), as numbers,
// tables, plots and a page.
#include <fmt/format.h>

#include <memory>

#include "apps/commands.h"
#include "apps/options.h"
#include "satformer/analysis/study/files.h"
#include "satformer/analysis/study/run.h"
#include "satformer/data/output_folder.h"
#include "satformer/runtime/device.h"

namespace satformer::apps {
namespace {

struct GatesFlags {
  ModelFlags model;
  std::string output, json;
  bool overwrite = false, no_initial = false;
  analysis::CheckpointStudyOptions study;
};

void print_summary(const analysis::GatesReport& report, const std::string& output) {
  if (report.model.gates) {
    fmt::print("{:>5} {:>10} {:>10} {:>10} {:>12} {:>6}\n", "layer", "mean", "zero", "open", "|a v1|/|v|", "Gini");
    for (const auto& layer : report.model.gates->layers) {
      fmt::print("{:>5} {:>10.4f} {:>9.1f}% {:>9.1f}% {:>12.4f} {:>6.3f}\n", layer.layer, layer.mean,
                 100 * layer.zero_fraction, 100 * layer.open_share, layer.contribution.mean, layer.gini);
    }
  }
  for (const std::string& finding : report.findings) fmt::print("{}\n", finding);
  fmt::print("report: {}\n", (std::filesystem::path(output) / "report.html").string());
}

void gates_command(const GatesFlags& flags) {
  check_report_output(flags.output, flags.overwrite, "gates", "gates.json");
  analysis::CheckpointStudyOptions study = flags.study;
  study.source.split = flags.model.split;
  study.stream = stream_options(flags.model, select_device(flags.model.device));
  study.initialization = !flags.no_initial;
  const analysis::GatesReport report = analysis::study_checkpoint(flags.model.checkpoint, study);
  data::OutputFolder folder(flags.output);
  analysis::write_report(report, folder.path());
  folder.commit();
  print_summary(report, flags.output);
  write_json_result(flags.json, to_json(report));
}

std::string check_ascending(const std::string& text) {
  double last = -1.0;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    double value = 0.0;
    if (!CLI::detail::lexical_cast(part, value) || value < 0) return "must be numbers of at least 0, got " + part;
    if (value <= last) return "must ascend, got " + text;
    last = value;
  }
  return "";
}

std::string check_open_share(const std::string& text) {
  double value = 0.0;
  const bool fits = CLI::detail::lexical_cast(text, value) && value > 0.0 && value < 1.0;
  return fits ? "" : "must be in (0, 1), got " + text;
}

void add_what(CLI::App& command, GatesFlags& flags) {
  add_model_options(command, flags.model);
  add_token_options(command, flags.study.source, flags.study.max_tokens);
  command.add_option("--text", flags.study.source.text, "A text file instead of --data (also JSONL, .gz, .zst)")
      ->type_name("FILE")
      ->excludes("--data");
  command.add_option("--output", flags.output, "Folder to make for the report")->type_name("DIR")->required();
  command.add_flag("--overwrite", flags.overwrite, "Replace the folder of an earlier report");
  command.add_flag("--every-checkpoint", flags.study.every_checkpoint, "Also over all checkpoints of the run");
  command.add_flag("--no-initialization", flags.no_initial, "Leave out the model before training");
}

void add_statistics(CLI::App& command, analysis::StudyOptions& study) {
  command
      .add_option_function<std::string>(
          "--thresholds",
          [&study](const std::string& text) {
            study.gates.gates.thresholds.clear();
            for (const std::string& part : CLI::detail::split(text, ',')) {
              study.gates.gates.thresholds.push_back(std::stod(part));
            }
          },
          "Shares of gates below these, ascending, with commas between them")
      ->type_name("X,Y,...")
      ->check(check_ascending, "", "")
      ->default_str("0.01,0.1,0.5");
  command.add_option("--open-above", study.gates.gates.open_above, "A gate is open when its magnitude is above this")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command.add_option("--text-tokens", study.gates.text_tokens, "Tokens of the page's text")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 16));
  command.add_option("--top", study.summary.listed_tokens, "Tokens with the largest and smallest gates, of each head")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}));
  command.add_option("--min-count", study.summary.min_token_count, "List tokens that occur at least so often")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--confidence", study.summary.bootstrap.confidence, "Of the bootstrap's intervals, in (0, 1)")
      ->capture_default_str()
      ->check(check_open_share, "", "");
  command.add_option("--resamples", study.summary.bootstrap.resamples, "Of the bootstrap")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{10}, std::int64_t{100'000}));
  command.add_option("--seed", study.summary.bootstrap.seed, "Of the bootstrap")->capture_default_str();
}

}  // namespace

void add_gates(CLI::App& app) {
  const auto flags = std::make_shared<GatesFlags>();
  CLI::App* command = app.add_subcommand("gates", "What the gates learned: sparsity, depth, heads, token classes");
  add_what(*command, *flags);
  flags->study.study.gates.text_tokens = 512;
  add_statistics(*command, flags->study.study);
  add_threads_option(*command);
  add_json_option(*command, flags->json);
  command->callback([flags] { gates_command(*flags); });
}

}  // namespace satformer::apps
