#include "satformer/bench/worker.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <istream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "satformer/bench/memory.h"
#include "satformer/bench/operator_times.h"
#include "satformer/bench/workload.h"
#include "satformer/core/clock.h"
#include "satformer/core/error.h"
#include "satformer/core/first_line.h"
#include "satformer/distributed/rank_device.h"
#include "satformer/io/strict_json.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"

namespace satformer::bench {
namespace {

using nlohmann::json;

class Worker {
 public:
  json answer(const json& request) {
    const auto command = request.at("command").get<std::string>();
    if (command == "start") return start(request);
    require(workload_ != nullptr, "request {}: nothing was started", in_quotes(command));
    if (command == "round") return round(request.at("steps").get<std::int64_t>());
    if (command == "products") return products();
    if (command == "memory") return memory();
    if (command == "parts") return parts();
    fail("unknown request {}", in_quotes(command));
  }

 private:
  json start(const json& request) {
    require(workload_ == nullptr, "request \"start\": something was started already");
    idle_bytes_ = resident_bytes();
    const train::RunConfig config = train::parse_run_config(request.at("config").dump(), "the request's config");
    at::set_num_threads(static_cast<int>(config.system.threads.value_or(1)));
    join_ranks(config);
    dtype_ = select_dtype(config.training.dtype, device_, "training.dtype");
    const auto kind = request.at("workload").get<std::string>();
    require(kind == "training" || kind == "bound", "workload: expected training or bound, got {}", in_quotes(kind));
    workload_ = kind == "bound" ? make_bound_workload(config, device_, dtype_)
                                : make_training_workload(config, device_, dtype_, world_);
    return {{"num_parameters", workload_->num_parameters()}};
  }

  // Where the parent has started several (bench/scaling.h).
  void join_ranks(const train::RunConfig& config) {
    auto place = distributed::rank_from_environment();
    if (place && place->started_by != "satformer") place.reset();  // of the job that the parent is in
    device_ = place ? distributed::device_of_rank(config.system.device, *place) : select_device(config.system.device);
    if (!place) return;
    distributed::WorldOptions options;
    options.device = device_;
    options.on_failure = [](const std::string& message) {
      fmt::print(stderr, "{}\n", message);  // the parent repeats a failed process's last line
      std::fflush(stderr);
      ::_exit(1);
    };
    world_ = std::make_shared<distributed::World>(*place, options);
  }

  json round(std::int64_t steps) {
    require(steps > 0, "round: expected at least one step, got {}", steps);
    prepare_device();
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < steps; ++i) workload_->step();
    synchronize(device_);
    const double seconds = seconds_since(start);
    release_cached_memory(device_);
    return {{"seconds", seconds}};
  }

  json products() const {
    const ProductRate rate = measure_product_rate(device_, dtype_);
    release_cached_memory(device_);
    return {{"size", rate.size}, {"flops_per_second", rate.flops_per_second}};
  }

  json memory() const {
    if (device_.is_cpu()) return {{"peak_bytes", peak_resident_bytes()}, {"idle_bytes", idle_bytes_}};
    return {{"peak_bytes", peak_allocated_bytes(device_)}, {"idle_bytes", 0}};
  }

  json parts() {
    prepare_device();
    const Clock::time_point start = Clock::now();
    const auto operators = device_.is_cpu() ? time_operators([&] { workload_->step(); })
                                            : time_operators([&] { workload_->step(); }, [&] { synchronize(device_); });
    const double seconds = seconds_since(start);
    release_cached_memory(device_);
    std::map<Part, double> sums;
    json listed = json::array();
    double elsewhere = seconds;
    for (const OperatorTime& time : operators) {
      sums[time.part] += time.seconds;
      elsewhere -= time.seconds;
      listed.push_back(
          {{"name", time.name}, {"part", name_of(time.part)}, {"seconds", time.seconds}, {"calls", time.calls}});
    }
    sums[Part::other] += std::max(0.0, elsewhere);  // autograd, Trainer and allocator outside any operator
    json parts = json::object();
    for (std::size_t i = 0; i < kNumParts; ++i) parts[name_of(static_cast<Part>(i))] = sums[static_cast<Part>(i)];
    return {{"seconds", seconds}, {"parts", parts}, {"operators", listed}};
  }

  // A device's memory is given back after each round, for the other processes; an untimed step gets it again. On the
  // CPU the others' threads spin for some milliseconds after their turn, and our own must wake up: small products until
  // then.
  void prepare_device() {
    if (!device_.is_cpu()) {
      workload_->step();
      synchronize(device_);
      return;
    }
    constexpr double kSeconds = 0.03;
    const at::Tensor x = at::ones({256, 256});
    for (const Clock::time_point start = Clock::now(); seconds_since(start) < kSeconds;) at::mm(x, x);
  }

  std::shared_ptr<distributed::World> world_ = std::make_shared<distributed::World>();
  std::unique_ptr<Workload> workload_;
  c10::Device device_ = c10::kCPU;
  c10::ScalarType dtype_ = c10::ScalarType::Float;
  std::int64_t idle_bytes_ = 0;
};

}  // namespace

bool serve_measurements(std::istream& input, std::ostream& output) {
  Worker worker;
  const auto reply = [&](const json& value) { output << value.dump() << '\n' << std::flush; };
  const auto fail_with = [&](const std::string& text) {
    reply({{"error", first_line(text)}});
    return false;
  };
  for (std::string line; std::getline(input, line);) {
    try {
      reply(worker.answer(parse_strict_json(line, "request")));
    } catch (const std::bad_alloc&) {
      return fail_with("out of memory");
    } catch (const c10::Error& error) {
      return fail_with(error.what_without_backtrace());
    } catch (const std::exception& error) {
      return fail_with(error.what());
    }
  }
  return true;
}

}  // namespace satformer::bench
