#pragma once
// Members of a JSON object that this program wrote earlier (trainer.json, dataset.json, the manifest), read without
// conversions: 1.0 is no integer, 2^63 does not become negative. For what people write, with defaults and hints:
// config.h.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace satformer {

// Every function throws Error "WHERE: KEY: expected ..., got ..."; the reader only refers to the object.
class JsonFields {
 public:
  // `where` is the file, with the path inside it for a nested object.
  JsonFields(const nlohmann::json& object, std::string where);

  std::int64_t integer(const char* key) const;
  std::uint64_t count(const char* key) const;  // an integer from 0 on
  std::optional<double> number_or_null(const char* key) const;
  const std::string& text(const char* key) const;
  JsonFields object(const char* key) const;

  const nlohmann::json& json() const { return object_; }
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& member(const char* key) const;
  [[noreturn]] void fail_type(const char* key, const char* expected) const;

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace satformer
