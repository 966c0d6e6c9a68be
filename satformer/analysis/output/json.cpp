#include "satformer/analysis/output/json.h"

#include <cmath>

namespace satformer::analysis {

using nlohmann::json;

json number_json(double value) { return std::isfinite(value) ? json(value) : json(); }

json numbers_json(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(number_json(value));
  return list;
}

json to_json(const Estimate& estimate) {
  return {{"value", number_json(estimate.value)},
          {"low", estimate.interval ? number_json(estimate.interval->low) : json()},
          {"high", estimate.interval ? number_json(estimate.interval->high) : json()}};
}

json to_json(const Spread& spread) {
  return {{"mean", number_json(spread.mean)}, {"std", number_json(spread.deviation)}};
}

json to_json(const Spreads& spreads) {
  return {{"mean", numbers_json(spreads.means)}, {"std", numbers_json(spreads.deviations)}};
}

}  // namespace satformer::analysis
