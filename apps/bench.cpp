// satformer bench: speed, memory and cost of the architectures, side by side.
#include <ATen/Parallel.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "apps/commands.h"
#include "apps/options.h"
#include "satformer/bench/build_comparison.h"
#include "satformer/bench/report.h"
#include "satformer/bench/scaling.h"
#include "satformer/bench/worker.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/distributed/launcher.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"

namespace satformer::apps {
namespace {

struct BenchFlags {
  bench::BenchSettings settings;
  std::string dtype = "auto", device = "auto", against, json;
  bool worker = false;
};

// What is wrong with a plan or another build is wrong with the flags that named it.
template <typename Make>
auto from_flags(const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw std::invalid_argument(error.what());
  }
}

bench::BenchPlan plan_from_flags(const bench::BenchSettings& settings) {
  return from_flags([&] { return bench::make_plan(settings); });
}

bench::OtherBuild other_build(const std::string& executable) {
  return from_flags([&] { return bench::inspect_build(executable); });
}

// A table for people, JSON where it was asked for.
void report(const BenchFlags& flags, const std::string& table, const nlohmann::json& json) {
  std::fputs(table.c_str(), stdout);
  write_json_result(flags.json, json);
}

// The plan for this machine; flags are checked first, because a GPU's libraries take seconds.
bench::BenchPlan make_plan(const BenchFlags& flags) {
  bench::BenchSettings settings = flags.settings;
  settings.ranks = 1;
  plan_from_flags(settings);
  settings.ranks = flags.settings.ranks;
  const c10::Device device = select_device(flags.device);
  settings.device = device.str();
  settings.dtype = select_dtype(flags.dtype, device, "--dtype") == c10::ScalarType::BFloat16 ? "bfloat16" : "float32";
  settings.threads = at::get_num_threads();
  return plan_from_flags(settings);
}

void bench_command(const BenchFlags& flags) {
  const auto other = flags.against.empty() ? std::nullopt : std::optional(other_build(flags.against));
  const bench::BenchPlan plan = make_plan(flags);
  const std::int64_t rounds = plan.settings.rounds;
  Progress progress("bench", "rounds", other ? rounds * static_cast<std::int64_t>(plan.configs.size()) : rounds);
  const std::vector<std::string> worker = {"/proc/self/exe", "bench", "--worker"};
  const auto show = [&](std::int64_t done, const std::string& what) { progress.update(done, what); };
  if (other) {
    const bench::BuildComparison result = bench::compare_builds(plan, worker, *other, show);
    progress.finish();
    report(flags, bench::build_comparison_table(result), bench::build_comparison_json(result));
  } else if (plan.settings.ranks > 1) {
    const bench::ScalingResult result = bench::run_scaling(plan, worker, show);
    progress.finish();
    report(flags, bench::scaling_table(result), bench::scaling_json(result));
  } else {
    const bench::BenchResult result = bench::run_bench(plan, worker, show);
    progress.finish();
    report(flags, bench::bench_table(result), bench::bench_json(result));
  }
}

// The measuring process; its failure has been replied to the parent, which reports it.
void worker_command() {
  distributed::follow_launcher();
  require(bench::serve_measurements(std::cin, std::cout), "the measurement failed");
}

void add_what(CLI::App& command, bench::BenchSettings& settings) {
  settings.architectures = {"all"};
  command.add_option("--architectures", settings.architectures, "all, or names with commas between them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES")
      ->default_str("all");
  command.add_option("--size", settings.size, "The model of CONFIG_DIR/ARCHITECTURE/SIZE.json")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("--config-dir", settings.config_dir, "Folder of the configurations [the installed ones]")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory, "", "");
  command
      .add_option("--set", settings.overrides,
                  "Override a key, hidden_size=256 of the model or training.fused=false; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--batch", settings.batch, "Sequences of a step")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command.add_option("--seq", settings.seq_length, "Tokens of a sequence")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->capture_default_str();
}

void add_how(CLI::App& command, BenchFlags& flags) {
  command.add_option("--dtype", flags.dtype, "auto, float32 or bfloat16")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}))
      ->capture_default_str();
  command.add_option("--device", flags.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  command.add_option("--rounds", flags.settings.rounds, "How many times each architecture is timed")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command.add_option("--steps-per-round", flags.settings.steps_per_round, "Steps that are timed together")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  CLI::Option* ranks =
      command
          .add_option("--nproc", flags.settings.ranks,
                      "Instead, compare one rank that has --threads CPU threads with N ranks that share them")
          ->type_name("N")
          ->check(CLI::Range(1, 1024));
  command.add_option("--against", flags.against, "Instead, compare this build with another one, round by round")
      ->type_name("EXECUTABLE")
      ->excludes(ranks);
  command.add_flag("--worker", flags.worker)->group("");  // hidden; the protocol is in satformer/bench/worker.h
}

}  // namespace

void add_bench(CLI::App& app) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Speed, memory and cost of the architectures, side by side");
  add_what(*command, flags->settings);
  add_how(*command, *flags);
  add_threads_option(*command);
  add_json_option(*command, flags->json);
  command->callback([flags] {
    if (flags->worker) {
      worker_command();
    } else {
      bench_command(*flags);
    }
  });
}

}  // namespace satformer::apps
