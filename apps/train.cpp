// satformer train: trains a model from a configuration.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>

#include "apps/commands.h"
#include "apps/options.h"
#include "apps/ranks.h"
#include "satformer/core/progress.h"
#include "satformer/distributed/launcher.h"
#include "satformer/eval/loss_total.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"
#include "satformer/train/trainer.h"

namespace satformer::apps {
namespace {

struct TrainFlags {
  std::string config, output, resume_from, json;
  std::vector<std::string> overrides;
  bool resume = false;
  int nproc = 1;
  CLI::Option* threads = nullptr;
};

void print(const train::TrainingResult& result) {
  const checkpoint::TrainerState& state = result.state;
  fmt::print("steps {}, tokens {}, {:.0f} tokens/s\n", state.step, state.tokens, result.tokens_per_second);
  if (state.train_loss) fmt::print("training loss {:.4f}\n", *state.train_loss);
  if (state.val_loss) {
    fmt::print("validation loss {:.4f}, perplexity {:.2f}\n", *state.val_loss, eval::perplexity(*state.val_loss));
  }
  fmt::print("checkpoint {}\n", result.checkpoint.string());
}

void note_how_to_continue(const TrainFlags& flags, const std::filesystem::path& output,
                          const distributed::RankInfo& info) {
  const std::string ranks = info.started_by == "satformer" ? fmt::format(" --nproc {}", info.size) : "";
  note(fmt::format("stopped by a signal; continue with: satformer train {} --output {}{} --resume", flags.config,
                   output.string(), ranks));
}

// This process's part of the training: all of it, or that of one rank.
void train(const TrainFlags& flags, train::RunConfig config, const distributed::RankInfo& info, c10::Device device,
           const std::shared_ptr<distributed::World>& world) {
  train::TrainerOptions options;
  options.output = flags.output.empty() ? config.checkpointing.checkpoint_dir : std::filesystem::path(flags.output);
  options.resume = {flags.resume, flags.resume_from};
  options.device = device;
  options.world = world;
  options.dtype = select_dtype(config.training.dtype, options.device, fmt::format("{}: training.dtype", flags.config));
  // Until the first step a signal ends the process at once: nothing is written yet.
  std::optional<StopSignal> stop;
  options.stop_requested = [&stop] { return stop->requested(); };

  train::Trainer trainer(std::move(config), options);
  stop.emplace();
  const train::TrainingResult result = trainer.run();
  if (world->is_rank_zero()) {
    print(result);
    if (result.stopped) note_how_to_continue(flags, options.output, info);
    write_json_result(flags.json, train::to_json(result));
  }
  world->shutdown();
}

std::vector<std::string> rank_command(const TrainFlags& flags) {
  std::vector<std::string> command = {"/proc/self/exe", "train", flags.config};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  add("--output", flags.output);
  add("--resume-from", flags.resume_from);
  add("--json", flags.json);
  for (const std::string& assignment : flags.overrides) add("--set", assignment);
  for (const std::string& threads : flags.threads->results()) add("--threads", threads);
  if (flags.resume) command.emplace_back("--resume");
  return command;
}

// Where nothing else says so, the ranks of a machine share its cores.
int threads_of_a_rank(const TrainFlags& flags, const train::RunConfig& config) {
  const bool chosen = flags.threads->count() > 0 || config.system.threads || std::getenv("OMP_NUM_THREADS") != nullptr;
  return chosen ? 0 : std::max(1, at::get_num_threads() / flags.nproc);
}

void train_command(const TrainFlags& flags) {
  distributed::follow_launcher();
  train::RunConfig config = train::load_run_config(flags.config, flags.overrides);
  const auto info = distributed::rank_from_environment();
  if (flags.nproc > 1) {
    if (info) throw std::invalid_argument(fmt::format("--nproc: {} has started the ranks already", info->started_by));
    return distributed::launch({rank_command(flags), flags.nproc, threads_of_a_rank(flags, config)});
  }
  if (config.system.threads && flags.threads->count() == 0) {
    at::set_num_threads(static_cast<int>(*config.system.threads));
  }
  if (!info) {
    const c10::Device device = select_device(config.system.device);
    return train(flags, std::move(config), {}, device, std::make_shared<distributed::World>());
  }
  run_as_rank(*info, {.device = config.system.device, .timeout_seconds = config.distributed.timeout},
              [&](c10::Device device, const std::shared_ptr<distributed::World>& world) {
                train(flags, std::move(config), *info, device, world);
              });
}

}  // namespace

void add_train(CLI::App& app) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand("train", "Train a model from a configuration; resume a run");
  command->add_option("config", flags->config, "Configuration (JSON); --help-config lists its keys")
      ->type_name("CONFIG")
      ->required();
  command
      ->add_option("--output", flags->output,
                   "The run's folder: metrics.jsonl, tensorboard/, checkpoints/ [checkpointing.checkpoint_dir]")
      ->type_name("DIR");
  command->add_option("--set", flags->overrides, "Override a key of the configuration; may be repeated")
      ->type_name("KEY=VALUE")
      ->check([](const std::string& text) {
        const std::size_t equals = text.find('=');
        return equals == std::string::npos || equals == 0 ? "expected KEY=VALUE, got " + text : std::string();
      })
      ->allow_extra_args(false);
  CLI::Option* resume = command->add_flag("--resume", flags->resume,
                                          "Continue from the folder's newest checkpoint; start afresh without one");
  command->add_option("--resume-from", flags->resume_from, "Continue from this checkpoint")
      ->type_name("CHECKPOINT")
      ->excludes(resume);
  command
      ->add_option("--nproc", flags->nproc,
                   "The number of ranks to start on this machine, which train together: one per GPU, or on the CPU [1]")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  flags->threads = add_threads_option(*command);
  add_json_option(*command, flags->json);
  command->add_flag_callback(
      "--help-config",
      [] {
        fmt::print("{}", train::describe_run_config_keys());
        throw CLI::Success();
      },
      "List every key of a configuration with its default, and exit");
  command->callback([flags] { train_command(*flags); });
}

}  // namespace satformer::apps
