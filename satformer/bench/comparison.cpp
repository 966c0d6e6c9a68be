#include "satformer/bench/comparison.h"

#include <memory>
#include <utility>

#include "satformer/bench/worker_process.h"
#include "satformer/core/error.h"

namespace satformer::bench {
namespace {

using nlohmann::json;

class Contestant {
 public:
  Contestant(const std::vector<std::string>& command, const std::string& name, const char* workload, const json& config)
      : process_(std::make_unique<WorkerProcess>(command, name)) {
    measured_.name = name;
    const json reply = process_->ask({{"command", "start"}, {"workload", workload}, {"config", config}});
    measured_.num_parameters = reply.at("num_parameters").get<std::int64_t>();
  }

  const std::string& name() const { return measured_.name; }

  double run(std::int64_t steps) {
    return process_->ask({{"command", "round"}, {"steps", steps}}).at("seconds").get<double>();
  }
  void run_round(const BenchSettings& settings) {
    const double seconds = run(settings.steps_per_round);
    measured_.tokens_per_second.push_back(static_cast<double>(settings.steps_per_round * settings.tokens_per_step()) /
                                          seconds);
  }
  json product_rate() { return process_->ask({{"command", "products"}}); }

  // Memory first: timing operators is no part of training.
  Measured finish() {
    const json memory = process_->ask({{"command", "memory"}});
    measured_.peak_bytes = memory.at("peak_bytes").get<std::int64_t>();
    measured_.idle_bytes = memory.at("idle_bytes").get<std::int64_t>();
    measured_.parts = process_->ask({{"command", "parts"}});
    process_.reset();
    return measured_;
  }

 private:
  std::unique_ptr<WorkerProcess> process_;
  Measured measured_;
};

}  // namespace

BenchResult run_bench(const BenchPlan& plan, const std::vector<std::string>& worker_command,
                      const BenchProgress& progress) {
  require(!plan.configs.empty(), "bench: the plan has no architecture");
  const BenchSettings& settings = plan.settings;
  std::vector<Contestant> contestants;  // the bound, then the architectures
  progress(0, "starting the bound");
  contestants.emplace_back(worker_command, "bound", "bound", plan.configs.front().values);
  for (const train::RunConfig& config : plan.configs) {
    progress(0, "starting " + config.model.architecture);
    contestants.emplace_back(worker_command, config.model.architecture, "training", config.values);
  }
  for (Contestant& contestant : contestants) {
    progress(0, "warming up " + contestant.name());
    contestant.run(1);
  }

  BenchResult result{.plan = plan, .architectures = {}, .bound = {}, .product_rates = {}, .product_size = 0};
  for (std::int64_t round = 0; round < settings.rounds; ++round) {
    progress(round, "matrix products");
    const json rate = contestants.front().product_rate();
    result.product_rates.push_back(rate.at("flops_per_second").get<double>());
    result.product_size = rate.at("size").get<std::int64_t>();
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      Contestant& contestant = contestants[(static_cast<std::size_t>(round) + i) % contestants.size()];
      progress(round, contestant.name());
      contestant.run_round(settings);
    }
  }

  progress(settings.rounds, "time by part");
  result.bound = contestants.front().finish();
  for (std::size_t i = 1; i < contestants.size(); ++i) result.architectures.push_back(contestants[i].finish());
  return result;
}

}  // namespace satformer::bench
