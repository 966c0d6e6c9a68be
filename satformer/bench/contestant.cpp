#include "satformer/bench/contestant.h"

namespace satformer::bench {

using nlohmann::json;

Contestant::Contestant(const std::vector<std::string>& command, const std::string& name, const char* workload,
                       const json& config)
    : process_(std::make_unique<WorkerProcess>(command, name)) {
  measured_.name = name;
  const json reply = process_->ask({{"command", "start"}, {"workload", workload}, {"config", config}});
  measured_.num_parameters = reply.at("num_parameters").get<std::int64_t>();
}

double Contestant::run(std::int64_t steps) {
  return process_->ask({{"command", "round"}, {"steps", steps}}).at("seconds").get<double>();
}

void Contestant::warm_up() { run(1); }

void Contestant::run_round(const BenchSettings& settings) {
  const double seconds = run(settings.steps_per_round);
  measured_.tokens_per_second.push_back(static_cast<double>(settings.steps_per_round * settings.tokens_per_step()) /
                                        seconds);
}

json Contestant::product_rate() { return process_->ask({{"command", "products"}}); }

Measured Contestant::finish() {
  const json memory = process_->ask({{"command", "memory"}});  // first: timing operators is no part of training
  measured_.peak_bytes = memory.at("peak_bytes").get<std::int64_t>();
  measured_.idle_bytes = memory.at("idle_bytes").get<std::int64_t>();
  measured_.parts = process_->ask({{"command", "parts"}});
  process_.reset();
  return measured_;
}

}  // namespace satformer::bench
