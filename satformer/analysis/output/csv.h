#pragma once
// CSV as RFC 4180 has it: a header line, fields quoted where they must be; empty where there is no value.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "satformer/analysis/statistics/bootstrap.h"

namespace satformer::analysis {

class CsvTable {
 public:
  explicit CsvTable(const std::vector<std::string>& columns) { add(columns); }
  void add(const std::vector<std::string>& fields);
  std::string take();

 private:
  std::string text_;
};

// A field; empty for NaN and for what is absent. A number is written as in JSON: 1.0, not 1.
std::string csv_cell(double value);
std::string csv_cell(std::int64_t value);
std::string csv_cell(const std::optional<std::int64_t>& value);

// Value, low, high.
void add_cells(std::vector<std::string>& fields, const Estimate& estimate);

// Tables by their files' names.
using Tables = std::map<std::string, std::string>;

}  // namespace satformer::analysis
