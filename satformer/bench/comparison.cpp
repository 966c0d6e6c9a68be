#include "satformer/bench/comparison.h"

#include "satformer/bench/contestant.h"
#include "satformer/core/error.h"

namespace satformer::bench {

using nlohmann::json;

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
    progress(0, "warming up " + contestant.measured().name);
    contestant.warm_up();
  }

  BenchResult result{.plan = plan, .architectures = {}, .bound = {}, .product_rates = {}, .product_size = 0};
  for (std::int64_t round = 0; round < settings.rounds; ++round) {
    progress(round, "matrix products");
    const json rate = contestants.front().product_rate();
    result.product_rates.push_back(rate.at("flops_per_second").get<double>());
    result.product_size = rate.at("size").get<std::int64_t>();
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      Contestant& contestant = contestants[(static_cast<std::size_t>(round) + i) % contestants.size()];
      progress(round, contestant.measured().name);
      contestant.run_round(settings);
    }
  }

  progress(settings.rounds, "time by part");
  result.bound = contestants.front().finish();
  for (std::size_t i = 1; i < contestants.size(); ++i) result.architectures.push_back(contestants[i].finish());
  return result;
}

}  // namespace satformer::bench
