#pragma once
// The tables of a gates document as CSV (RFC 4180, with a header line; empty where there is no value).
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace satformer::analysis {

// By file name: heads.csv, layers.csv, histogram.csv, positions.csv, categories.csv, tokens.csv, access.csv,
// dynamics.csv; those that the document has something for. docs/gates.md lists their columns.
std::map<std::string, std::string> gate_tables(const nlohmann::json& document);

}  // namespace satformer::analysis
