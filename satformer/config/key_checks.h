#pragma once
// What a configuration key's value must be: the checks of rows (config/config_key.h). Each throws an Error that names
// the source, the key, what is expected and the value.
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "satformer/config/config_key.h"
#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"

namespace satformer {

inline void require_between(std::int64_t value, std::int64_t low, std::int64_t high, const std::string& source,
                            const std::string& key) {
  require(low <= value && value <= high, "{}: {} must be {} .. {}, got {}", source, key, low, high, value);
}

inline auto between(std::int64_t low, std::int64_t high) {
  return [low, high](std::int64_t value, const auto& /*config*/, const KeyPlace& place) {
    require_between(value, low, high, place.source, place.path);
  };
}

// low .. a member of a row above, plus `offset`.
template <typename Config>
auto between(std::int64_t low, std::int64_t Config::* high, std::int64_t offset = 0) {
  return [low, high, offset](std::int64_t value, const Config& config, const KeyPlace& place) {
    require_between(value, low, config.*high + offset, place.source, place.path);
  };
}

inline auto not_negative() {
  return [](double value, const auto& /*config*/, const KeyPlace& place) {
    require(std::isfinite(value) && value >= 0, "{}: {} must be 0 or more, got {}", place.source, place.path, value);
  };
}

inline auto above_zero() {
  return [](double value, const auto& /*config*/, const KeyPlace& place) {
    require(std::isfinite(value) && value > 0, "{}: {} must be above 0, got {}", place.source, place.path, value);
  };
}

// least <= value
template <std::integral Integer>
auto at_least(Integer least) {
  return [least](std::int64_t value, const auto& /*config*/, const KeyPlace& place) {
    require(value >= least, "{}: {} is {}, expected an integer of at least {}", place.source, place.path, value, least);
  };
}
// least <= value < below
inline auto at_least(double least, double below = HUGE_VAL) {
  return [least, below](double value, const auto& /*config*/, const KeyPlace& place) {
    require(value >= least && value < below, "{}: {} is {}, expected a number of at least {}{}", place.source,
            place.path, value, least, std::isfinite(below) ? fmt::format(" and below {}", below) : "");
  };
}

// "a, b or c": what an error says that the value must be.
inline auto one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& value, const auto& /*config*/, const KeyPlace& place) {
    if (std::find(words.begin(), words.end(), value) != words.end()) return;
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i) {
      list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    }
    fail("{}: {} must be {}, got {}", place.source, place.path, list, in_quotes(value));
  };
}

}  // namespace satformer
