#pragma once
// CSV as RFC 4180 has it.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace satformer::analysis {

class CsvTable {
 public:
  explicit CsvTable(const std::vector<std::string>& columns) { add(columns); }
  void add(const std::vector<std::string>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) text_ += ',';
      text_ += field(fields[i]);
    }
    text_ += "\r\n";
  }
  std::string take() { return std::move(text_); }

 private:
  static std::string field(const std::string& value) {
    if (value.find_first_of(",\"\r\n") == std::string::npos) return value;
    std::string result = "\"";
    for (const char c : value) result += c == '"' ? "\"\"" : std::string(1, c);
    return result + "\"";
  }
  std::string text_;
};

// A field of a JSON value; empty for null.
inline std::string csv_cell(const nlohmann::json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace satformer::analysis
