#pragma once
// Rounded numbers (statistics/rounding.h) as JSON; null for NaN.
#include <nlohmann/json.hpp>
#include <vector>

#include "satformer/analysis/statistics/bootstrap.h"
#include "satformer/analysis/statistics/rounding.h"

namespace satformer::analysis {

nlohmann::json number_json(double value);
nlohmann::json numbers_json(const std::vector<double>& values);
nlohmann::json to_json(const Estimate& estimate);  // {"value", "low", "high"}
nlohmann::json to_json(const Spread& spread);      // {"mean", "std"}
nlohmann::json to_json(const Spreads& spreads);    // the same, lists

}  // namespace satformer::analysis
