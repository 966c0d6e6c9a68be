#include "satformer/bench/build_comparison.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "satformer/bench/memory.h"
#include "satformer/bench/statistics.h"
#include "satformer/bench/worker_process.h"
#include "satformer/core/error.h"
#include "satformer/core/first_line.h"
#include "satformer/io/strict_json.h"
#include "satformer/runtime/version.h"

namespace satformer::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> worker_of(const OtherBuild& build) { return {build.executable.string(), "bench", "--worker"}; }

std::string version_of(const fs::path& executable) {
  constexpr std::string_view kName = "satformer ";
  std::string line;
  try {
    line = WorkerProcess({executable.string(), "--version"}, executable.string()).read_line();
  } catch (const Error& error) {
    fail("--against: no satformer: {}", error.what());
  }
  require(line.starts_with(kName), "--against: {} is no satformer: --version answers {}", executable.string(),
          in_quotes(first_line(line)));
  return line.substr(kName.size());
}

// A measuring process that has started nothing answers any request with an error of its own.
void check_protocol(const OtherBuild& build) {
  std::string answer;
  try {
    WorkerProcess process(worker_of(build), build.executable.string());
    process.send({{"command", "memory"}});
    answer = process.read_line();
    if (parse_strict_json(answer, "the reply").contains("error")) return;
  } catch (const Error& error) {
    answer = error.what();
  }
  fail("--against: {} is satformer {}, whose `bench --worker` this build cannot speak with: {}",
       build.executable.string(), build.version, first_line(answer));
}

struct Contestants {
  Contestant ours, other;
};

Contestants start(const BenchPlan& plan, std::size_t index, const std::vector<std::string>& worker_command,
                  const OtherBuild& build) {
  const std::string& architecture = plan.configs[index].model.architecture;
  const json& config = plan.given[index];
  Contestants pair{Contestant(worker_command, architecture, "training", config),
                   Contestant(worker_of(build), fmt::format("{} of {}", architecture, build.executable.string()),
                              "training", config)};
  const std::int64_t ours = pair.ours.measured().num_parameters, others = pair.other.measured().num_parameters;
  require(ours == others, "{} has {} parameters in this build and {} in {}: not the same model", architecture, ours,
          others, build.executable.string());
  return pair;
}

json measured_json(const Measured& measured) {
  return {{"tokens_per_second", to_json(summarize(measured.tokens_per_second))},
          {"tokens_per_second_by_round", measured.tokens_per_second},
          {"num_parameters", measured.num_parameters},
          {"peak_memory_bytes", measured.peak_bytes},
          {"memory_growth_bytes", measured.growth_bytes()},
          {"seconds_by_part", measured.parts.at("parts")}};
}

json pair_json(const BuildPair& pair) {
  const std::vector<double> ratios = pair.ratios();
  const Quartiles spread = quartiles(ratios);
  json order = json::array();
  for (const Build build : pair.first_by_round) order.push_back(build == Build::ours ? "ours" : "other");
  return {{"ratio", summarize(ratios).median},
          {"ratio_quartiles", {spread.lower, spread.upper}},
          {"ratio_by_round", ratios},
          {"peak_memory_ratio", static_cast<double>(pair.ours.peak_bytes) / static_cast<double>(pair.other.peak_bytes)},
          {"first_by_round", std::move(order)},
          {"ours", measured_json(pair.ours)},
          {"other", measured_json(pair.other)}};
}

}  // namespace

OtherBuild inspect_build(const fs::path& executable) {
  require(fs::exists(executable), "--against: {}: no such file", executable.string());
  require(fs::is_regular_file(executable) && ::access(executable.c_str(), X_OK) == 0, "--against: {} is not executable",
          executable.string());
  OtherBuild build{.executable = executable, .version = version_of(executable)};
  check_protocol(build);
  return build;
}

std::vector<double> BuildPair::ratios() const {
  return ratios_by_round(ours.tokens_per_second, other.tokens_per_second);
}

BuildComparison compare_builds(const BenchPlan& plan, const std::vector<std::string>& worker_command,
                               const OtherBuild& other, const BenchProgress& progress) {
  BuildComparison comparison{.plan = plan, .other = other, .architectures = {}};
  for (std::size_t i = 0; i < plan.configs.size(); ++i) {
    progress(0, "checking " + plan.configs[i].model.architecture);
    start(plan, i, worker_command, other);
  }
  std::int64_t rounds_done = 0;
  for (std::size_t i = 0; i < plan.configs.size(); ++i) {
    BuildPair pair{.architecture = plan.configs[i].model.architecture, .ours = {}, .other = {}, .first_by_round = {}};
    progress(rounds_done, "starting " + pair.architecture);
    Contestants both = start(plan, i, worker_command, other);
    both.ours.warm_up();
    both.other.warm_up();
    for (std::int64_t round = 0; round < plan.settings.rounds; ++round, ++rounds_done) {
      progress(rounds_done, pair.architecture);
      const bool ours_first = round % 2 == 0;
      pair.first_by_round.push_back(ours_first ? Build::ours : Build::other);
      (ours_first ? both.ours : both.other).run_round(plan.settings);
      (ours_first ? both.other : both.ours).run_round(plan.settings);
    }
    pair.ours = both.ours.finish();
    pair.other = both.other.finish();
    comparison.architectures.push_back(std::move(pair));
  }
  return comparison;
}

std::string build_comparison_table(const BuildComparison& comparison) {
  std::string text =
      fmt::format("ours: satformer {}; other: satformer {}, {}\n{}\n", version(), comparison.other.version,
                  comparison.other.executable.string(), describe(comparison.plan.settings));
  text += fmt::format("{:<16}{:>12}{:>12}{:>8}{:>18}{:>18}{:>12}{:>12}\n", "", "tokens/s", "other's", "ratio",
                      "half of rounds", "least .. most", "peak MiB", "other's");
  for (const BuildPair& pair : comparison.architectures) {
    const Summary ratio = summarize(pair.ratios());
    const Quartiles spread = quartiles(pair.ratios());
    text += fmt::format("{:<16}{:>12.1f}{:>12.1f}{:>8.3f}{:>18}{:>18}{:>12.0f}{:>12.0f}\n", pair.architecture,
                        summarize(pair.ours.tokens_per_second).median, summarize(pair.other.tokens_per_second).median,
                        ratio.median, fmt::format("{:.3f} .. {:.3f}", spread.lower, spread.upper),
                        fmt::format("{:.3f} .. {:.3f}", ratio.min, ratio.max),
                        static_cast<double>(pair.ours.peak_bytes) / kMebibyte,
                        static_cast<double>(pair.other.peak_bytes) / kMebibyte);
  }
  return text +
         "tokens/s: medians. ratio: the median of each round's ratio, ours / other's; half of the rounds lie in "
         "the range beside it.\n";
}

json build_comparison_json(const BuildComparison& comparison) {
  json architectures = json::object();
  for (const BuildPair& pair : comparison.architectures) architectures[pair.architecture] = pair_json(pair);
  return {{"satformer", version()},
          {"other", {{"executable", comparison.other.executable.string()}, {"satformer", comparison.other.version}}},
          {"settings", to_json(comparison.plan.settings)},
          {"architectures", std::move(architectures)}};
}

}  // namespace satformer::bench
