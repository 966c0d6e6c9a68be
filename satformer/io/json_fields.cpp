#include "satformer/io/json_fields.h"

#include <limits>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"

namespace satformer {

JsonFields::JsonFields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) fail("{}: expected an object, got {}", where_, shortened(object));
}

std::int64_t JsonFields::integer(const char* key) const {
  const nlohmann::json& value = member(key);
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest) fail_type(key, "an integer below 2^63");
  if (!value.is_number_integer()) fail_type(key, "an integer");
  return value.get<std::int64_t>();
}

std::uint64_t JsonFields::count(const char* key) const {
  const nlohmann::json& value = member(key);
  if (!value.is_number_unsigned()) fail_type(key, "an integer from 0 on");
  return value.get<std::uint64_t>();
}

std::optional<double> JsonFields::number_or_null(const char* key) const {
  const nlohmann::json& value = member(key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number()) fail_type(key, "a number or null");
  return value.get<double>();
}

const std::string& JsonFields::text(const char* key) const {
  const nlohmann::json& value = member(key);
  if (!value.is_string()) fail_type(key, "a string");
  return value.get_ref<const std::string&>();
}

JsonFields JsonFields::object(const char* key) const { return {member(key), where_ + ": " + key}; }

const nlohmann::json& JsonFields::member(const char* key) const {
  const auto found = object_.find(key);
  require(found != object_.end(), "{}: key \"{}\" is missing", where_, key);
  return *found;
}

void JsonFields::fail_type(const char* key, const char* expected) const {
  fail("{}: {}: expected {}, got {}", where_, key, expected, shortened(member(key)));
}

}  // namespace satformer
