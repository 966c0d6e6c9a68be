#include "satformer/checkpoint/parameters.h"

#include <set>
#include <string>

namespace satformer::checkpoint {

std::vector<optim::NamedParameter> named_parameters(const models::LanguageModel& model) {
  const std::set<std::string> decayed = model.decayed_parameters();
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : model.named_parameters()) {
    parameters.push_back({item.key(), item.value(), decayed.contains(item.key())});
  }
  return parameters;
}

TensorMap parameter_map(const models::LanguageModel& model) {
  TensorMap map;
  for (const optim::NamedParameter& parameter : named_parameters(model)) map.emplace(parameter.name, parameter.tensor);
  return map;
}

}  // namespace satformer::checkpoint
