#include "satformer/optim/parameter_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace satformer::optim {
namespace {

// "model.layers.3.attn.q_proj.weight" -> {"model.layers.3.attn.q_proj", "weight"}; {"", name} without a dot.
std::pair<std::string_view, std::string_view> split_last(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {{}, name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// The layer's own name: "q_proj" of "model.layers.3.attn.q_proj.weight".
std::string_view layer_of(std::string_view parameter) { return split_last(split_last(parameter).first).second; }

}  // namespace

std::int64_t ParameterGroup::num_elements() const {
  return std::accumulate(parameters.begin(), parameters.end(), std::int64_t{0},
                         [](std::int64_t sum, const NamedParameter& p) { return sum + p.tensor.numel(); });
}

std::vector<ParameterGroup> make_parameter_groups(const std::vector<NamedParameter>& parameters, double weight_decay) {
  std::vector<ParameterGroup> groups = {{"decay", weight_decay, {}}, {"no decay", 0.0, {}}};
  for (const NamedParameter& parameter : parameters) {
    groups[parameter.decays ? 0 : 1].parameters.push_back(parameter);
  }
  return groups;
}

std::string describe(const ParameterGroup& group) {
  std::vector<std::string_view> layers;
  for (const NamedParameter& parameter : group.parameters) {
    const std::string_view layer =
        layer_of(parameter.name).empty() ? std::string_view(parameter.name) : layer_of(parameter.name);
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  return fmt::format("weight decay {}: {} tensors, {} values{}{}{}", group.weight_decay, group.parameters.size(),
                     group.num_elements(), layers.empty() ? "" : " (", fmt::join(layers, ", "),
                     layers.empty() ? "" : ")");
}

}  // namespace satformer::optim
