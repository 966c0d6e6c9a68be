#include "satformer/distributed/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "satformer/core/error.h"

namespace satformer::distributed {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxPort = 65535;
constexpr int kDefaultPort = 29500;  // LibTorch's
// Ports by job, below those that systems give to outgoing connections.
constexpr int kFirstJobPort = 10000, kJobPorts = 20000;

class Variables {
 public:
  explicit Variables(const GetVariable& get_variable) : get_variable_(get_variable) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = get_variable_(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  }
  std::string required_text(const char* name, const char* beside) const {
    const auto value = text(name);
    require(value.has_value(), "the environment has {} but no {}: both are needed to join the other ranks", beside,
            name);
    return *value;
  }
  std::optional<int> number(const char* name, int least, int most) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    int result = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
    require(error == std::errc() && end == value->data() + value->size() && result >= least && result <= most,
            "the environment variable {} is \"{}\", expected an integer from {} to {}", name, *value, least, most);
    return result;
  }
  int required_number(const char* name, const char* beside, int least, int most) const {
    required_text(name, beside);
    return *number(name, least, most);
  }

 private:
  const GetVariable& get_variable_;
};

RankInfo from_torchrun(const Variables& variables) {
  RankInfo info;
  info.size = variables.required_number("WORLD_SIZE", "RANK", 1, kMaxRanks);
  info.rank = variables.required_number("RANK", "WORLD_SIZE", 0, info.size - 1);
  info.local_rank = variables.number("LOCAL_RANK", 0, kMaxRanks).value_or(info.rank);
  info.started_by = variables.text("SATFORMER_LAUNCHER") ? "satformer" : "torchrun";
  if (info.size == 1) return info;
  info.master_address = variables.required_text("MASTER_ADDR", "RANK");
  info.master_port = static_cast<std::uint16_t>(variables.required_number("MASTER_PORT", "RANK", 1, kMaxPort));
  info.launcher_has_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return info;
}

int job_port(const Variables& variables) {
  const auto job = variables.number("SLURM_JOB_ID", 0, INT32_MAX);
  return job ? kFirstJobPort + *job % kJobPorts : kDefaultPort;
}

RankInfo from_slurm(const Variables& variables) {
  RankInfo info;
  info.size = variables.required_number("SLURM_NTASKS", "SLURM_PROCID", 1, kMaxRanks);
  info.rank = variables.required_number("SLURM_PROCID", "SLURM_NTASKS", 0, info.size - 1);
  info.started_by = "Slurm";
  if (info.size == 1) return info;
  info.local_rank = variables.required_number("SLURM_LOCALID", "SLURM_PROCID", 0, kMaxRanks);
  if (const auto address = variables.text("MASTER_ADDR")) {
    info.master_address = *address;
  } else {
    const auto step = variables.text("SLURM_STEP_NODELIST");
    info.master_address = first_host(step ? *step : variables.required_text("SLURM_JOB_NODELIST", "SLURM_PROCID"));
  }
  info.master_port =
      static_cast<std::uint16_t>(variables.number("MASTER_PORT", 1, kMaxPort).value_or(job_port(variables)));
  return info;
}

}  // namespace

std::optional<RankInfo> rank_from_environment(const GetVariable& get_variable) {
  const Variables variables(get_variable);
  std::optional<RankInfo> info;
  if (variables.text("RANK") || variables.text("WORLD_SIZE")) {
    info = from_torchrun(variables);
  } else if (variables.text("SLURM_PROCID") && variables.text("SLURM_NTASKS")) {
    info = from_slurm(variables);
  }
  return info && info->size > 1 ? info : std::nullopt;
}

std::optional<RankInfo> rank_from_environment() {
  return rank_from_environment([](const char* name) { return std::getenv(name); });
}

std::string first_host(const std::string& list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    // Of "[003-010,012]" the first number.
    const std::size_t end = list.find(']', i);
    require(end != list.npos, "Slurm's list of hosts \"{}\" lacks a ]", list);
    const std::string_view numbers(list.data() + i + 1, end - i - 1);
    host += numbers.substr(0, numbers.find_first_of("-,"));
    i = end;
  }
  require(!host.empty(), "Slurm's list of hosts \"{}\" names no host", list);
  return host;
}

}  // namespace satformer::distributed
