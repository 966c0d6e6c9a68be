#pragma once
// JSON configuration against a list of known keys. A key is a path with dots: training.learning_rate.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace satformer {

enum class KeyType { boolean, integer, number, string };

struct Key {
  std::string path;  // "training.learning_rate"
  KeyType type = KeyType::number;
  nlohmann::json default_value;  // null: the key may be absent or null
  std::string help;              // one line for the reference; empty: known (published), but without meaning here
  bool required = false;
};

using KeyList = std::vector<Key>;

// The known key that is closest to `name` by edit distance.
std::string nearest_key(std::string_view name, const KeyList& keys);

struct ParsedConfig {
  nlohmann::json values;             // nested objects; every known key with a meaning is present (default filled in)
  std::vector<std::string> ignored;  // keys that were given, are known, and have no meaning here
};

// Checks a JSON object against the keys. Errors name `source` (the file), the key's path, the nearest known key for
// an unknown one, the expected type and the value that came. Duplicate keys in one object are errors.
ParsedConfig parse_config(const std::string& text, const std::string& source, const KeyList& keys,
                          const std::vector<std::string>& overrides = {});
ParsedConfig load_config(const std::filesystem::path& path, const KeyList& keys,
                         const std::vector<std::string>& overrides = {});

// Applies one override "training.learning_rate=1e-3". The value is JSON, or else taken as a string. A path may be
// shortened to any suffix that fits one key alone: hidden_size for model.config_overrides.hidden_size.
void apply_override(nlohmann::json& config, const std::string& assignment, const KeyList& keys);

// The value at a path of a parsed config; null where absent.
const nlohmann::json& value_at(const nlohmann::json& config, std::string_view path);

template <typename T>
T get(const nlohmann::json& config, std::string_view path) {
  return value_at(config, path).get<T>();
}
template <typename T>
std::optional<T> get_optional(const nlohmann::json& config, std::string_view path) {
  const nlohmann::json& value = value_at(config, path);
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

}  // namespace satformer
