#pragma once
// A configuration key as one row: its name, the member that holds its value, what it means, what a value must be.
//
//   const std::vector<ConfigKey<DataConfig>> keys{
//       {"seq_length", &DataConfig::seq_length, "tokens of one sequence", at_least(1)},
//       {"document_mask", &DataConfig::document_mask, "attention and positions do not cross documents"}};
//
// The default is the member's initialiser. The list of known keys (config/config.h), reading and writing follow from
// the rows. A member is a bool, an integer, a double, a string or a path, or an optional one of these, whose key may be
// null. Checks: config/key_checks.h.
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "satformer/config/config.h"

namespace satformer {

// Where a value stands, for messages.
struct KeyPlace {
  const std::string& source;  // the file
  const std::string& path;
};

namespace config_detail {

// T without std::optional.
template <typename T>
struct ValueOf {
  using Type = T;
};
template <typename T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};
template <typename T>
using Value = typename ValueOf<T>::Type;

template <typename T>
KeyType key_type() {
  if constexpr (std::same_as<T, bool>) return KeyType::boolean;
  if constexpr (std::same_as<T, double>) return KeyType::number;
  if constexpr (std::integral<T>) return KeyType::integer;
  return KeyType::string;
}

template <typename T>
nlohmann::json to_json_value(const T& value) {
  if constexpr (std::same_as<T, std::filesystem::path>) return value.string();
  return value;
}
template <typename T>
nlohmann::json to_json_value(const std::optional<T>& value) {
  return value ? to_json_value(*value) : nlohmann::json();
}

// What a value is read as, so that a check sees a negative number before it becomes an unsigned one.
template <typename T>
auto from_json_value(const nlohmann::json& value) {
  if constexpr (std::same_as<T, bool> || std::same_as<T, double>) {
    return value.get<T>();
  } else if constexpr (std::integral<T>) {
    return value.get<std::int64_t>();
  } else {
    return value.get<std::string>();
  }
}

}  // namespace config_detail

struct NoCheck {
  template <typename T, typename Config>
  void operator()(const T& /*value*/, const Config& /*config*/, const KeyPlace& /*place*/) const {}
};

template <typename Config>
struct ConfigKey {
  // `check(value, config, place)` throws an Error. It is called for a value that is given, and sees in `config` the
  // keys of the rows above.
  template <typename T, typename Check = NoCheck>
  ConfigKey(std::string name, T Config::* member, std::string help, Check check = {}) {
    bind<T>(std::move(name), std::move(help), check, [member](auto& config) -> auto& { return config.*member; });
  }
  // A member of a struct that is a member.
  template <typename Part, typename T, typename Check = NoCheck>
  ConfigKey(std::string name, Part Config::* part, T Part::* member, std::string help, Check check = {}) {
    bind<T>(std::move(name), std::move(help), check,
            [part, member](auto& config) -> auto& { return config.*part.*member; });
  }

  // The rows of a part as rows of the whole, their names after "SECTION.".
  template <typename Part>
  static std::vector<ConfigKey> section(const std::string& name, Part Config::* part,
                                        const std::vector<ConfigKey<Part>>& rows) {
    std::vector<ConfigKey> result;
    for (const ConfigKey<Part>& row : rows) {
      ConfigKey whole;
      whole.key = row.key;
      whole.key.path = name + "." + row.key.path;
      whole.read = [part, read = row.read](Config& config, const nlohmann::json& value, const KeyPlace& place) {
        read(config.*part, value, place);
      };
      if (row.write) whole.write = [part, write = row.write](const Config& config) { return write(config.*part); };
      result.push_back(std::move(whole));
    }
    return result;
  }

  // The same row for a key that may be null: the reader of the rows then derives the member's value from others.
  ConfigKey derived() const {
    ConfigKey row = *this;
    row.key.default_value = nullptr;
    return row;
  }
  // The same row for a key that is read and never written.
  ConfigKey input_only() const {
    ConfigKey row = *this;
    row.write = nullptr;
    return row;
  }

  Key key;
  // Reads a value that is not null and has the key's type.
  std::function<void(Config&, const nlohmann::json&, const KeyPlace&)> read;
  std::function<nlohmann::json(const Config&)> write;

 private:
  ConfigKey() = default;

  // `member(config)` is a reference to the member, of type T.
  template <typename T, typename Check, typename Member>
  void bind(std::string name, std::string help, Check check, Member member) {
    using Value = config_detail::Value<T>;
    key.path = std::move(name);
    key.type = config_detail::key_type<Value>();
    key.help = std::move(help);
    read = [member, check](Config& config, const nlohmann::json& value, const KeyPlace& place) {
      const auto given = config_detail::from_json_value<Value>(value);
      check(given, std::as_const(config), place);
      member(config) = static_cast<Value>(given);
    };
    write = [member](const Config& config) { return config_detail::to_json_value(member(config)); };
    key.default_value = write(Config{});
  }
};

// Reads the members from `values`; one whose key is absent or null stays as it is. Error names `source` and the key.
template <typename Config>
void read_keys(const std::vector<ConfigKey<Config>>& rows, const nlohmann::json& values, const std::string& source,
               Config& config) {
  for (const ConfigKey<Config>& row : rows) {
    const nlohmann::json& value = value_at(values, row.key.path);
    if (!value.is_null()) row.read(config, value, {source, row.key.path});
  }
}

// The members under their names, which hold no dots.
template <typename Config>
void write_keys(const std::vector<ConfigKey<Config>>& rows, const Config& config, nlohmann::json& values) {
  for (const ConfigKey<Config>& row : rows) {
    if (row.write) values[row.key.path] = row.write(config);
  }
}

template <typename Config>
void append_keys(const std::vector<ConfigKey<Config>>& rows, KeyList& keys) {
  for (const ConfigKey<Config>& row : rows) keys.push_back(row.key);
}

}  // namespace satformer
