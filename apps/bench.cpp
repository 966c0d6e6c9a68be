// satformer bench: speed, memory and cost of the architectures, side by side.
#include <ATen/Parallel.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "apps/commands.h"
#include "apps/options.h"
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
  std::string dtype = "auto", device = "auto", json;
  bool worker = false;
};

// What is wrong with a plan is wrong with the flags that made it.
bench::BenchPlan plan_from_flags(const bench::BenchSettings& settings) {
  try {
    return bench::make_plan(settings);
  } catch (const Error& error) {
    throw std::invalid_argument(error.what());
  }
}

void bench_command(const BenchFlags& flags) {
  bench::BenchSettings settings = flags.settings;
  settings.ranks = 1;
  plan_from_flags(settings);  // flags first: a GPU's libraries take seconds
  settings.ranks = flags.settings.ranks;
  const c10::Device device = select_device(flags.device);
  settings.device = device.str();
  settings.dtype = select_dtype(flags.dtype, device, "--dtype") == c10::ScalarType::BFloat16 ? "bfloat16" : "float32";
  settings.threads = at::get_num_threads();
  const bench::BenchPlan plan = plan_from_flags(settings);

  Progress progress("bench", "rounds", settings.rounds);
  const std::vector<std::string> worker = {"/proc/self/exe", "bench", "--worker"};
  const auto show = [&](std::int64_t rounds, const std::string& what) { progress.update(rounds, what); };
  if (plan.settings.ranks > 1) {
    const bench::ScalingResult result = bench::run_scaling(plan, worker, show);
    progress.finish();
    std::fputs(bench::scaling_table(result).c_str(), stdout);
    return write_json_result(flags.json, bench::scaling_json(result));
  }
  const bench::BenchResult result = bench::run_bench(plan, worker, show);
  progress.finish();
  std::fputs(bench::bench_table(result).c_str(), stdout);
  write_json_result(flags.json, bench::bench_json(result));
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
  command.add_option("--rounds", flags.settings.rounds, "How often each architecture is timed")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command.add_option("--steps-per-round", flags.settings.steps_per_round, "Steps that are timed together")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--nproc", flags.settings.ranks,
                  "Instead, compare one rank that has --threads CPU threads with N ranks that share them")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
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
