#include "satformer/config/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/io/strict_json.h"

namespace satformer {

using nlohmann::json;

namespace {

constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{16} << 20;

const char* type_name(KeyType type) {
  switch (type) {
    case KeyType::boolean:
      return "true or false";
    case KeyType::integer:
      return "an integer";
    case KeyType::number:
      return "a number";
    case KeyType::string:
      return "a string";
  }
  return "a value";
}

// 5.0 is an integer as well; anything that int64 cannot hold is none.
std::optional<std::int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    const bool fits = number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return fits ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  const bool whole = std::nearbyint(number) == number && std::fabs(number) < 0x1p63;
  return whole ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

// The value in the key's type; nothing when it does not fit.
std::optional<json> convert(const json& value, const Key& key) {
  if (value.is_null()) return key.default_value.is_null() && !key.required ? std::optional(value) : std::nullopt;
  switch (key.type) {
    case KeyType::boolean:
      return value.is_boolean() ? std::optional(value) : std::nullopt;
    case KeyType::string:
      return value.is_string() ? std::optional(value) : std::nullopt;
    case KeyType::number:
      return value.is_number() ? std::optional(json(value.get<double>())) : std::nullopt;
    case KeyType::integer:
      if (const auto integer = as_integer(value)) return json(*integer);
      return std::nullopt;
  }
  return std::nullopt;
}

json checked(const json& value, const Key& key, const std::string& source) {
  if (auto converted = convert(value, key)) return *std::move(converted);
  const bool optional = key.default_value.is_null() && !key.required;
  fail("{}: {}: expected {}{}, got {}", source, key.path, type_name(key.type), optional ? " or null" : "",
       shortened(value));
}

bool has_meaning(const Key& key) { return !key.help.empty(); }

const Key* find_key(std::string_view path, const KeyList& keys) {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

bool is_section(std::string_view path, const KeyList& keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const Key& key) {
    return key.path.size() > path.size() && key.path.starts_with(path) && key.path[path.size()] == '.';
  });
}

// Whether `name` is the path or its end, from a dot on.
bool is_suffix(std::string_view name, std::string_view path) {
  return path == name ||
         (path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '.');
}

[[noreturn]] void fail_unknown(const std::string& source, std::string_view path, const KeyList& keys) {
  const std::string nearest = nearest_key(path, keys);
  const std::string hint = nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest);
  fail("{}: unknown key {}{}", source, in_quotes(path), hint);
}

// The place of a path in nested objects; sections are made on the way.
json& place_of(json& config, std::string_view path, const std::string& source) {
  json* place = &config;
  for (std::size_t begin = 0;;) {
    if (!place->is_null() && !place->is_object()) {
      fail("{}: {}: expected an object (a section), got {}", source, path.substr(0, begin == 0 ? 0 : begin - 1),
           shortened(*place));
    }
    const std::size_t dot = path.find('.', begin);
    place = &(*place)[std::string(path.substr(begin, dot - begin))];
    if (dot == path.npos) return *place;
    begin = dot + 1;
  }
}

// Walks the given objects and checks each value against its key.
class Checker {
 public:
  Checker(const std::string& source, const KeyList& keys, ParsedConfig& result)
      : source_(source), keys_(keys), result_(result) {}

  void check_section(const json& section, const std::string& prefix) {
    for (const auto& [name, value] : section.items()) {
      if (name.find('.') != name.npos) {
        fail("{}: key {} holds a dot; write nested objects", source_, in_quotes(prefix + name));
      }
      check(value, prefix + name);
    }
  }

 private:
  void check(const json& value, const std::string& path) {
    if (const Key* key = find_key(path, keys_)) {
      take(value, *key);
    } else if (is_section(path, keys_)) {
      if (!value.is_object()) fail("{}: {}: expected an object (a section), got {}", source_, path, shortened(value));
      check_section(value, path + ".");
    } else {
      fail_unknown(source_, path, keys_);
    }
  }

  void take(const json& value, const Key& key) {
    if (has_meaning(key)) {
      place_of(result_.values, key.path, source_) = checked(value, key, source_);
    } else {
      result_.ignored.push_back(key.path);
    }
  }

  const std::string& source_;
  const KeyList& keys_;
  ParsedConfig& result_;
};

void fill_defaults(const KeyList& keys, json& values) {
  values = json::object();
  for (const Key& key : keys) {
    if (!has_meaning(key)) continue;
    json& place = place_of(values, key.path, "defaults");
    if (!key.default_value.is_null()) place = checked(key.default_value, key, "the default");
  }
}

void require_given(const KeyList& keys, const json& given, const std::string& source) {
  for (const Key& key : keys) {
    require(!key.required || !value_at(given, key.path).is_null(), "{}: required key \"{}\" is missing ({})", source,
            key.path, key.help);
  }
}

// The key that an override means: its full path, or the end of one path alone.
const Key& resolve(std::string_view name, const std::string& source, const KeyList& keys) {
  if (const Key* key = find_key(name, keys)) return *key;
  std::vector<const Key*> fitting;
  for (const Key& key : keys) {
    if (is_suffix(name, key.path)) fitting.push_back(&key);
  }
  if (fitting.empty()) fail_unknown(source, name, keys);
  if (fitting.size() > 1) {
    std::vector<std::string_view> paths;
    for (const Key* key : fitting) paths.push_back(key->path);
    fail("{}: \"{}\" may mean {}; write the full path", source, name, fmt::join(paths, " or "));
  }
  return *fitting.front();
}

// JSON, or else a string. A string key takes 2024 and true as the texts that they are.
json parse_override(const std::string& text, const Key& key) {
  json value;
  try {
    value = parse_strict_json(text, "");
  } catch (const Error&) {
    return text;
  }
  const bool literal = key.type == KeyType::string && (value.is_number() || value.is_boolean());
  return literal ? json(text) : value;
}

// Levenshtein's distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitution = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitution, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// A right name in a wrong section is nearer than a similar path: one edit for the section.
std::size_t distance(std::string_view name, std::string_view path) {
  return std::min(edit_distance(name, path), edit_distance(last_part(name), last_part(path)) + 1);
}

}  // namespace

std::string nearest_key(std::string_view name, const KeyList& keys) {
  name = name.substr(0, 256);  // the work grows with the length
  const auto nearest = std::min_element(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    return distance(name, a.path) < distance(name, b.path);
  });
  return nearest == keys.end() ? std::string() : nearest->path;
}

ParsedConfig parse_config(const std::string& text, const std::string& source, const KeyList& keys,
                          const std::vector<std::string>& overrides) {
  json given = parse_strict_json(text, source);
  if (!given.is_object()) fail("{}: expected an object, got {}", source, shortened(given));
  for (const std::string& assignment : overrides) apply_override(given, assignment, keys);
  ParsedConfig result;
  fill_defaults(keys, result.values);
  Checker(source, keys, result).check_section(given, "");
  require_given(keys, given, source);
  return result;
}

ParsedConfig load_config(const std::filesystem::path& path, const KeyList& keys,
                         const std::vector<std::string>& overrides) {
  return parse_config(read_file(path, kMaxConfigBytes), path.string(), keys, overrides);
}

void apply_override(json& config, const std::string& assignment, const KeyList& keys) {
  const std::string source = fmt::format("--set {}", printable(assignment));
  const std::size_t equals = assignment.find('=');
  require(equals != assignment.npos && equals > 0, "{}: expected KEY=VALUE", source);
  const Key& key = resolve(std::string_view(assignment).substr(0, equals), source, keys);
  json value = parse_override(assignment.substr(equals + 1), key);
  if (has_meaning(key)) value = checked(value, key, source);
  place_of(config, key.path, source) = std::move(value);
}

const json& value_at(const json& config, std::string_view path) {
  static const json absent;
  const json* value = &config;
  for (std::size_t begin = 0;;) {
    const std::size_t dot = path.find('.', begin);
    const std::string name(path.substr(begin, dot - begin));
    const auto found = value->is_object() ? value->find(name) : value->end();
    if (!value->is_object() || found == value->end()) return absent;
    value = &*found;
    if (dot == path.npos) return *value;
    begin = dot + 1;
  }
}

}  // namespace satformer
