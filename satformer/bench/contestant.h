#pragma once
// One of the things that are compared: a workload in a process of its own, and what was measured of it.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/bench/settings.h"
#include "satformer/bench/worker_process.h"

namespace satformer::bench {

struct Measured {
  std::string name;
  std::int64_t num_parameters = 0;
  std::vector<double> tokens_per_second;  // by round
  std::int64_t peak_bytes = 0;            // CPU: the process's resident set; CUDA: the allocator's
  std::int64_t idle_bytes = 0;            // CPU: resident before the model was made
  nlohmann::json parts;                   // the reply to "parts" (bench/worker.h)

  std::int64_t growth_bytes() const { return peak_bytes - idle_bytes; }
};

class Contestant {
 public:
  // Starts `command` (a program that calls serve_measurements) with `workload`, "training" or "bound", of `config`.
  // `name` is what the result and errors call it.
  Contestant(const std::vector<std::string>& command, const std::string& name, const char* workload,
             const nlohmann::json& config);

  const Measured& measured() const { return measured_; }

  // An untimed step.
  void warm_up();
  // A round's steps, timed; adds to tokens_per_second.
  void run_round(const BenchSettings& settings);
  // The reply to "products".
  nlohmann::json product_rate();
  // Memory and the time by part; ends the process.
  Measured finish();

 private:
  double run(std::int64_t steps);

  std::unique_ptr<WorkerProcess> process_;
  Measured measured_;
};

}  // namespace satformer::bench
