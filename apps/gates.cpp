// satformer gates: what the gates of a checkpoint learned (or how another architecture reads its depth), as numbers,
// tables, plots and a page.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "apps/commands.h"
#include "apps/gates_study.h"
#include "apps/options.h"
#include "satformer/analysis/gate_report.h"
#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/core/error.h"
#include "satformer/data/output_folder.h"
#include "satformer/runtime/device.h"

namespace satformer::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void print_summary(const json& document, const std::string& output) {
  if (!document["gates"].is_null()) {
    fmt::print("{:>5} {:>10} {:>10} {:>10} {:>12} {:>6}\n", "layer", "mean", "zero", "open", "|a v1|/|v|", "Gini");
    const auto number = [](const json& value) { return value.is_number() ? value.get<double>() : NAN; };
    for (const json& layer : document["gates"]["layers"]) {
      fmt::print("{:>5} {:>10.4f} {:>9.1f}% {:>9.1f}% {:>12.4f} {:>6.3f}\n", layer["layer"].get<int>(),
                 number(layer["mean"]), 100 * number(layer["zero_fraction"]), 100 * number(layer["open_share"]),
                 number(layer["contribution"]["mean"]), number(layer["gini"]));
    }
  }
  for (const json& finding : document["findings"]) fmt::print("{}\n", finding.get<std::string>());
  fmt::print("report: {}\n", (fs::path(output) / "report.html").string());
}

void gates_command(const GatesFlags& flags) {
  check_report_output(flags.output, flags.overwrite, "gates", "gates.json");
  const c10::Device device = select_device(flags.device);
  const fs::path checkpoint = checkpoint::find(flags.checkpoint);
  const auto model = checkpoint::load_model(checkpoint);
  require(analysis::has_early_access(model->config()),
          "{}: this {} reaches early representations in no layer: there is nothing to tell", checkpoint.string(),
          model->config().architecture);
  const TokenSource source = open_token_source(flags.source, checkpoint, model->config());
  const json document = make_gates_document(flags, checkpoint, *model, source, device);
  data::OutputFolder folder(flags.output);
  analysis::write_report(document, folder.path());
  folder.commit();
  print_summary(document, flags.output);
  write_json_result(flags.json, document);
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
  command.add_option("checkpoint", flags.checkpoint, "A checkpoint's folder, or a run's (its newest checkpoint)")
      ->type_name("CHECKPOINT")
      ->required();
  add_token_source_options(command, flags.source);
  command.add_option("--text", flags.source.text, "A text file instead of --data (also JSONL, .gz, .zst)")
      ->type_name("FILE")
      ->excludes("--data");
  command.add_option("--output", flags.output, "Folder to make for the report")->type_name("DIR")->required();
  command.add_flag("--overwrite", flags.overwrite, "Replace the folder of an earlier report");
  command.add_flag("--every-checkpoint", flags.every_checkpoint, "Also over all checkpoints of the run");
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
  command.add_option("--top", study.json.listed_tokens, "Tokens with the largest and smallest gates, of each head")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}));
  command.add_option("--min-count", study.json.min_token_count, "List tokens that occur at least so often")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--confidence", study.json.bootstrap.confidence, "Of the bootstrap's intervals, in (0, 1)")
      ->capture_default_str()
      ->check(check_open_share, "", "");
  command.add_option("--resamples", study.json.bootstrap.resamples, "Of the bootstrap")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{10}, std::int64_t{100'000}));
  command.add_option("--seed", study.json.bootstrap.seed, "Of the bootstrap")->capture_default_str();
}

}  // namespace

void add_gates(CLI::App& app) {
  const auto flags = std::make_shared<GatesFlags>();
  CLI::App* command = app.add_subcommand("gates", "What the gates learned: sparsity, depth, heads, token classes");
  add_what(*command, *flags);
  add_statistics(*command, flags->study);
  command->add_option("--batch", flags->sequences, "Windows in memory at a time [4096 tokens' worth]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command->add_option("--dtype", flags->dtype, "auto, float32 or bfloat16")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}));
  command->add_option("--device", flags->device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  add_threads_option(*command);
  add_json_option(*command, flags->json);
  command->callback([flags] { gates_command(*flags); });
}

}  // namespace satformer::apps
