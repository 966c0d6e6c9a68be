#pragma once
// Numbers of a report: seven significant digits, null for what does not exist (NaN, infinity).
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace satformer::analysis {

inline nlohmann::json json_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

}  // namespace satformer::analysis
