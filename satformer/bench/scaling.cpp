#include "satformer/bench/scaling.h"

#include <algorithm>
#include <memory>

#include "satformer/bench/statistics.h"
#include "satformer/bench/worker_process.h"
#include "satformer/core/error.h"
#include "satformer/distributed/local_store.h"
#include "satformer/runtime/version.h"

namespace satformer::bench {
namespace {

using nlohmann::json;

bool on_gpus(const BenchPlan& plan) { return plan.settings.device.starts_with("cuda"); }

// The worker processes of one architecture's ranks: one or several.
class RankGroup {
 public:
  RankGroup(const std::vector<std::string>& command, const train::RunConfig& config, int ranks)
      : name_(fmt::format("{}, {} rank{}", config.model.architecture, ranks, ranks > 1 ? "s" : "")) {
    if (ranks > 1) store_ = std::make_unique<distributed::LocalStore>();
    for (int rank = 0; rank < ranks; ++rank) {
      processes_.push_back(std::make_unique<WorkerProcess>(
          command, fmt::format("{}: rank {}", name_, rank),
          store_ ? distributed::rank_variables(rank, ranks, store_->port()) : std::vector<std::string>()));
    }
    json values = config.values;
    if (ranks > 1) {
      values["system"]["threads"] = std::max<std::int64_t>(1, config.system.threads.value_or(1) / ranks);
      if (config.system.device.starts_with("cuda")) values["system"]["device"] = "cuda";  // each its own
    }
    ask({{"command", "start"}, {"workload", "training"}, {"config", values}});
  }

  const std::string& name() const { return name_; }

  // The slowest rank's seconds.
  double run(std::int64_t steps) {
    double seconds = 0;
    for (const json& reply : ask({{"command", "round"}, {"steps", steps}})) {
      seconds = std::max(seconds, reply.at("seconds").get<double>());
    }
    return seconds;
  }

 private:
  std::vector<json> ask(const json& request) {
    for (const auto& process : processes_) process->send(request);
    std::vector<json> replies;
    for (const auto& process : processes_) replies.push_back(process->reply());
    return replies;
  }

  std::string name_;
  std::unique_ptr<distributed::LocalStore> store_;
  std::vector<std::unique_ptr<WorkerProcess>> processes_;
};

}  // namespace

ScalingResult run_scaling(const BenchPlan& plan, const std::vector<std::string>& worker_command,
                          const BenchProgress& progress) {
  const BenchSettings& settings = plan.settings;
  ScalingResult result{.plan = plan, .architectures = {}};
  for (const train::RunConfig& config : plan.configs) {
    Scaling scaling{.architecture = config.model.architecture, .one = {}, .ranks = {}};
    progress(0, "starting " + scaling.architecture);
    RankGroup one(worker_command, config, 1), several(worker_command, config, settings.ranks);
    for (RankGroup* group : {&one, &several}) group->run(2);  // warming up
    const auto time = [&](RankGroup& group, std::int64_t round) {
      progress(round, group.name());
      return static_cast<double>(settings.steps_per_round * settings.tokens_per_step()) /
             group.run(settings.steps_per_round);
    };
    for (std::int64_t round = 0; round < settings.rounds; ++round) {
      if (round % 2 == 0) scaling.one.push_back(time(one, round));
      scaling.ranks.push_back(time(several, round));
      if (round % 2 != 0) scaling.one.push_back(time(one, round));
    }
    result.architectures.push_back(std::move(scaling));
  }
  return result;
}

std::vector<double> efficiencies(const ScalingResult& result, const Scaling& scaling) {
  std::vector<double> ratios = ratios_by_round(scaling.ranks, scaling.one);
  const double ideal = on_gpus(result.plan) ? result.plan.settings.ranks : 1;
  for (double& ratio : ratios) ratio /= ideal;
  return ratios;
}

std::string scaling_table(const ScalingResult& result) {
  const BenchSettings& settings = result.plan.settings;
  const std::string each =
      on_gpus(result.plan) ? std::string("a GPU each") : fmt::format("{} threads in all", settings.threads);
  std::string text =
      fmt::format("{} x {} tokens a step, {}, {}; rounds {}; median\n{:<16}{:>14}{:>14}{:>12} (least .. most)\n",
                  settings.batch, settings.seq_length, settings.dtype, each, settings.rounds, "", "1 rank",
                  fmt::format("{} ranks", settings.ranks), "efficiency");
  for (const Scaling& scaling : result.architectures) {
    const Summary efficiency = summarize(efficiencies(result, scaling));
    text += fmt::format("{:<16}{:>14.1f}{:>14.1f}{:>12.3f} ({:.3f} .. {:.3f})\n", scaling.architecture,
                        summarize(scaling.one).median, summarize(scaling.ranks).median, efficiency.median,
                        efficiency.min, efficiency.max);
  }
  return text;
}

nlohmann::json scaling_json(const ScalingResult& result) {
  const BenchSettings& settings = result.plan.settings;
  json architectures = json::object();
  for (const Scaling& scaling : result.architectures) {
    architectures[scaling.architecture] = {{"tokens_per_second_1", to_json(summarize(scaling.one))},
                                           {"tokens_per_second_n", to_json(summarize(scaling.ranks))},
                                           {"efficiency", summarize(efficiencies(result, scaling)).median},
                                           {"efficiency_by_round", efficiencies(result, scaling)}};
  }
  return {{"satformer", version()},
          {"ranks", settings.ranks},
          {"settings", to_json(settings)},
          {"architectures", std::move(architectures)}};
}

}  // namespace satformer::bench
