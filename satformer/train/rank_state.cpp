#include "satformer/train/rank_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "satformer/distributed/agreement.h"
#include "satformer/distributed/flat_list.h"
#include "satformer/runtime/version.h"

namespace satformer::train {
namespace {

using distributed::FlatList;
using distributed::Transfer;

// Of the configuration, what may differ from machine to machine.
constexpr std::array<const char*, 4> kLocalKeys{"/data/data_dir", "/checkpointing/checkpoint_dir", "/system/device",
                                                "/system/threads"};

nlohmann::json common_values(nlohmann::json values) {
  for (const char* key : kLocalKeys) {
    const nlohmann::json::json_pointer pointer(key);
    if (values.contains(pointer)) values[pointer] = nullptr;
  }
  return values;
}

Transfer transfer(const DistributedConfig& config, int ranks, std::string name) {
  constexpr double kLeastBytes = 1 << 16;  // of smaller pieces the sending costs more than the bytes
  const double bytes = std::max(config.bucket_mb * (1 << 20) / ranks, kLeastBytes);
  return {.elements = static_cast<std::int64_t>(bytes / sizeof(float)), .name = std::move(name)};
}

FlatList flat_parameters(const optim::AdamW& optimizer) {
  const std::vector<at::Tensor> parameters = optimizer.parameters();
  return {parameters, parameters.front().options()};
}

// Gathers the moments of one kind into `prefix`NAME.
void gather_moments(distributed::World& world, const optim::AdamW& optimizer, const std::vector<at::Tensor>& own,
                    const std::string& prefix, const Transfer& transfer, std::map<std::string, at::Tensor>& into) {
  const FlatList mine(own, optimizer.parameters().front().options());
  std::optional<FlatList> all;
  if (world.is_rank_zero()) {
    std::vector<at::Tensor> whole;
    for (const optim::ParameterGroup& group : optimizer.groups()) {
      for (const optim::NamedParameter& parameter : group.parameters) {
        const at::Tensor& tensor = parameter.tensor;
        const at::Tensor moment = at::empty_like(tensor, tensor.options().requires_grad(false).device(at::kCPU));
        into[prefix + parameter.name] = moment;
        whole.push_back(moment);
      }
    }
    all.emplace(whole, whole.front().options());
  }
  gather_parts(world, optimizer.num_elements(), mine, optimizer.owned().begin, all ? &*all : nullptr, transfer);
}

}  // namespace

void require_same_start(distributed::World& world, const StartFacts& facts) {
  nlohmann::json shapes = nlohmann::json::object();
  for (const optim::NamedParameter& parameter : facts.parameters) {
    shapes[parameter.name] = parameter.tensor.sizes().vec();
  }
  require_agreement(world, {{"version of satformer", version()},
                            {"configuration", common_values(facts.config.values)},
                            {"training data (fingerprint)", facts.state.data_fingerprint},
                            {"validation data (fingerprint)", facts.validation_fingerprint},
                            {"parameters' shapes", std::move(shapes)},
                            {"step to start from", facts.state.step},
                            {"sample to start from", facts.state.samples},
                            {"checkpoint to start from (checksum)", facts.checkpoint_checksum}});
}

void broadcast_parameters(distributed::World& world, const optim::AdamW& optimizer, const DistributedConfig& config) {
  if (world.size() == 1) return;
  broadcast_list(world, flat_parameters(optimizer), /*root=*/0, transfer(config, 1, "the broadcast of parameters"));
}

void gather_parameters(distributed::World& world, const optim::AdamW& optimizer, const DistributedConfig& config) {
  const FlatList parameters = flat_parameters(optimizer);
  gather_parts(world, parameters.size(), parameters, /*first=*/0, &parameters,
               transfer(config, world.size(), "the all-gather of updated parameters"));
}

std::map<std::string, at::Tensor> gather_optimizer_state(distributed::World& world, const optim::AdamW& optimizer,
                                                         const DistributedConfig& config) {
  std::map<std::string, at::Tensor> state;
  const Transfer each = transfer(config, world.size(), "the all-gather of the optimiser's state");
  gather_moments(world, optimizer, optimizer.exp_avgs(), "exp_avg.", each, state);
  gather_moments(world, optimizer, optimizer.exp_avg_sqs(), "exp_avg_sq.", each, state);
  if (world.is_rank_zero()) state.merge(optimizer.steps());
  return state;
}

}  // namespace satformer::train
