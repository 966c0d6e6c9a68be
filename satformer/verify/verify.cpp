#include "satformer/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "satformer/core/error.h"
#include "satformer/core/first_line.h"
#include "satformer/io/files.h"
#include "satformer/models/architectures.h"
#include "satformer/verify/reference_case.h"

namespace satformer::verify {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool holds_case(const fs::path& folder) {
  return fs::exists(folder / kCaseConfigFile) || fs::exists(folder / kCaseTensorsFile);
}

std::string name_of(const fs::path& folder) {
  const fs::path full = fs::weakly_canonical(folder);
  return full.filename().string();
}

std::vector<fs::path> cases_below(const fs::path& folder) {
  std::vector<fs::path> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && holds_case(entry.path())) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

// A failed case must not hide the others. Foreign messages are cut to their first line.
CaseResult run_case(const fs::path& folder) {
  CaseResult result{.name = name_of(folder), .checks = {}, .failure = "", .skipped = ""};
  try {
    const ReferenceCase reference = load_reference_case(folder);
    result.checks = reference.is_training_run() ? check_training(reference) : check_forward(reference);
  } catch (const std::exception& error) {
    const std::string message = error.what();
    result.failure = first_line(message);
  }
  return result;
}

// Empty, or why the case cannot run in this build.
std::string reason_to_skip(const fs::path& folder) {
  try {
    const std::string architecture = declared_architecture(folder);
    if (models::find_architecture(architecture) != nullptr) return "";
    return fmt::format("architecture {} not in this build", architecture);
  } catch (const Error&) {
    return "";  // running the case gives the full error
  }
}

std::string row(std::string_view name, std::string_view kind, std::string_view error, std::string_view tolerance,
                std::string_view verdict, std::string_view tensor) {
  return fmt::format("{:<24} {:<21} {:>10} {:>10}  {:<6} {}\n", name, kind, error, tolerance, verdict, tensor);
}

std::string rows_of(const CaseResult& item) {
  if (!item.skipped.empty()) return row(item.name, "", "", "", "skip", fmt::format("skipped ({})", item.skipped));
  if (!item.failure.empty()) return row(item.name, "", "", "", "FAILED", item.failure);
  std::string rows;
  for (const Check& check : item.checks) {
    rows += row(item.name, check.kind, fmt::format("{:.2e}", check.error), fmt::format("{:.1e}", check.tolerance),
                check.passed() ? "ok" : "FAILED", check.tensor);
  }
  return rows;
}

json case_json(const CaseResult& item) {
  json errors = json::object();
  for (const Check& check : item.checks) {
    errors[check.kind] = std::isfinite(check.error) ? json(check.error) : json(nullptr);
  }
  json result{{"name", item.name}, {"passed", item.passed()}, {"errors", std::move(errors)}};
  if (!item.failure.empty()) result["failure"] = item.failure;
  return result;
}

}  // namespace

bool CaseResult::passed() const {
  return failure.empty() && skipped.empty() && !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed(); });
}

bool Report::passed() const {
  const auto ran = [](const CaseResult& item) { return item.skipped.empty(); };
  return std::any_of(cases.begin(), cases.end(), ran) &&
         std::all_of(cases.begin(), cases.end(), [&](const CaseResult& item) { return !ran(item) || item.passed(); });
}

Report run_cases(const std::vector<fs::path>& folders) {
  Report report;
  for (const fs::path& folder : folders) {
    require(fs::is_directory(folder), "{}: no such folder", folder.string());
    if (holds_case(folder)) {
      const std::string reason = reason_to_skip(folder);
      require(reason.empty(), "{}: {}", folder.string(), reason);
      report.cases.push_back(run_case(folder));
      continue;
    }
    const std::vector<fs::path> cases = cases_below(folder);
    require(!cases.empty(), "{}: neither a case ({} and {}) nor a folder of cases", folder.string(), kCaseConfigFile,
            kCaseTensorsFile);
    for (const fs::path& path : cases) {
      const std::string reason = reason_to_skip(path);
      report.cases.push_back(reason.empty() ? run_case(path) : CaseResult{name_of(path), {}, "", reason});
    }
  }
  return report;
}

std::string format_table(const Report& report) {
  std::string table = row("case", "kind", "error", "tolerance", "", "worst tensor");
  for (const CaseResult& item : report.cases) table += rows_of(item);
  return table;
}

json to_json(const Report& report) {
  json result{{"passed", report.passed()}, {"cases", json::array()}, {"skipped", json::array()}};
  for (const CaseResult& item : report.cases) {
    if (item.skipped.empty()) {
      result["cases"].push_back(case_json(item));
    } else {
      result["skipped"].push_back({{"name", item.name}, {"reason", item.skipped}});
    }
  }
  return result;
}

}  // namespace satformer::verify
