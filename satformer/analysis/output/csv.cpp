#include "satformer/analysis/output/csv.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace satformer::analysis {
namespace {

std::string quoted(const std::string& value) {
  if (value.find_first_of(",\"\r\n") == std::string::npos) return value;
  std::string result = "\"";
  for (const char c : value) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

}  // namespace

void CsvTable::add(const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) text_ += ',';
    text_ += quoted(fields[i]);
  }
  text_ += "\r\n";
}

std::string CsvTable::take() { return std::move(text_); }

std::string csv_cell(double value) { return std::isfinite(value) ? nlohmann::json(value).dump() : ""; }

std::string csv_cell(std::int64_t value) { return std::to_string(value); }

std::string csv_cell(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : ""; }

void add_cells(std::vector<std::string>& fields, const Estimate& estimate) {
  fields.push_back(csv_cell(estimate.value));
  fields.push_back(estimate.interval ? csv_cell(estimate.interval->low) : "");
  fields.push_back(estimate.interval ? csv_cell(estimate.interval->high) : "");
}

}  // namespace satformer::analysis
