#include "satformer/bench/report.h"

#include <ATen/Version.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "satformer/bench/memory.h"
#include "satformer/bench/operator_times.h"
#include "satformer/bench/statistics.h"
#include "satformer/models/architectures.h"
#include "satformer/runtime/version.h"

namespace satformer::bench {
namespace {

using nlohmann::json;

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(": ") + 2));
  }
  return "unknown";
}

const Measured* transformer_of(const BenchResult& result) {
  const auto found = std::find_if(result.architectures.begin(), result.architectures.end(),
                                  [](const Measured& measured) { return measured.name == models::baseline().name; });
  return found == result.architectures.end() ? nullptr : &*found;
}

double median_rate(const Measured& measured) { return summarize(measured.tokens_per_second).median; }

// Of each round's ratio: what the machine does to a whole round, it does to both.
Summary ratio_to(const Measured& measured, const Measured& base) {
  return summarize(ratios_by_round(measured.tokens_per_second, base.tokens_per_second));
}

// KEY: the median of the rounds' ratios, KEY_by_round: also the least and the most; null without a base.
void add_ratio(json& object, const std::string& key, const Measured& measured, const Measured* base) {
  object[key] = base == nullptr ? json() : json(ratio_to(measured, *base).median);
  object[key + "_by_round"] = base == nullptr ? json() : to_json(ratio_to(measured, *base));
}

double utilization(const BenchResult& result, const Measured& measured) {
  const double flops = model_flops_per_token(result.plan.trunk, result.plan.settings.seq_length);
  return median_rate(measured) * flops / summarize(result.product_rates).median;
}

json measured_json(const BenchResult& result, const Measured& measured) {
  return {{"tokens_per_second", to_json(summarize(measured.tokens_per_second))},
          {"tokens_per_second_by_round", measured.tokens_per_second},
          {"num_parameters", measured.num_parameters},
          {"model_flops_utilization", utilization(result, measured)},
          {"seconds_by_part", measured.parts.at("parts")},
          {"profiled_step_seconds", measured.parts.at("seconds")},
          {"operators", measured.parts.at("operators")}};
}

json settings_json(const BenchSettings& settings) {
  json result = to_json(settings);
  result.update({{"optimizer", "adamw"}, {"grad_clip", 1.0}});
  return result;
}

std::string speed_and_memory(const BenchResult& result) {
  std::string text = fmt::format("{:<16}{:>12} {:>10} {:>22} {:>7} {:>7} {:>7} {:>9} {:>9}\n", "", "parameters",
                                 "tokens/s", "", "ratio", "bound", "MFU", "peak MiB", "growth");
  const Measured* transformer = transformer_of(result);
  const auto row = [&](const Measured& measured, const std::string& peak, const std::string& growth) {
    const Summary rate = summarize(measured.tokens_per_second);
    const std::string between = fmt::format("({:.1f} .. {:.1f})", rate.min, rate.max);
    const std::string ratio =
        transformer == nullptr ? "-" : fmt::format("{:.3f}", ratio_to(measured, *transformer).median);
    text += fmt::format("{:<16}{:>12} {:>10.1f} {:>22} {:>7} {:>7.3f} {:>7.3f} {:>9} {:>9}\n", measured.name,
                        measured.num_parameters, rate.median, between, ratio, ratio_to(measured, result.bound).median,
                        utilization(result, measured), peak, growth);
  };
  const auto mebibytes = [](std::int64_t bytes) {
    return fmt::format("{:.0f}", static_cast<double>(bytes) / kMebibyte);
  };
  for (const Measured& measured : result.architectures) {
    row(measured, mebibytes(measured.peak_bytes), mebibytes(measured.growth_bytes()));
  }
  row(result.bound, "-", "-");
  return text;
}

std::string time_by_part(const BenchResult& result) {
  std::string text = fmt::format("{:<16} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "time by part", "products", "attention",
                                 "fused", "optimizer", "other");
  for (const Measured& measured : result.architectures) {
    text += fmt::format("{:<16}", measured.name);
    const auto seconds = measured.parts.at("seconds").get<double>();
    for (std::size_t i = 0; i < kNumParts; ++i) {
      const auto part = measured.parts.at("parts").at(name_of(static_cast<Part>(i))).get<double>();
      text += fmt::format(" {:>9.1f}%", 100 * part / seconds);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

json bench_json(const BenchResult& result) {
  json architectures = json::object();
  for (const Measured& measured : result.architectures) {
    json entry = measured_json(result, measured);
    entry["peak_memory_bytes"] = measured.peak_bytes;
    entry["memory_growth_bytes"] = measured.growth_bytes();
    add_ratio(entry, "ratio_to_transformer", measured, transformer_of(result));
    add_ratio(entry, "bound_fraction", measured, &result.bound);
    architectures[measured.name] = std::move(entry);
  }
  json model = json::object();
  for (const train::RunConfig& config : result.plan.configs) {
    model[config.model.architecture] = models::model_config_to_json(config.model);
  }
  const BenchSettings& settings = result.plan.settings;
  return {{"satformer", version()},
          {"settings", settings_json(settings)},
          {"machine",
           {{"cpu", cpu_model()},
            {"logical_cpus", std::thread::hardware_concurrency()},
            {"cpu_capability", at::get_cpu_capability()}}},
          {"models", model},
          {"model_flops_per_token", model_flops_per_token(result.plan.trunk, settings.seq_length)},
          {"matrix_product",
           {{"size", result.product_size},
            {"dtype", settings.dtype},
            {"flops_per_second", to_json(summarize(result.product_rates))}}},
          {"bound", measured_json(result, result.bound)},
          {"architectures", std::move(architectures)}};
}

std::string bench_table(const BenchResult& result) {
  const BenchSettings& settings = result.plan.settings;
  return describe(settings) + "; median (least .. most)\n" + speed_and_memory(result) + time_by_part(result) +
         fmt::format(
             "ratio, bound: to the transformer, and to the trunk's matrix products and attention alone; medians of the "
             "rounds' ratios.\n"
             "MFU: of {:.1f} GFLOP/s, a {} product of {} x {} matrices.\n",
             summarize(result.product_rates).median / 1e9, settings.dtype, result.product_size, result.product_size);
}

}  // namespace satformer::bench
