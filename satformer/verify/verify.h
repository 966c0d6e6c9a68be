#pragma once
// Compares this implementation with reference vectors made elsewhere: a case is a folder with config.json and
// golden.safetensors, either one forward pass with every gradient or a short training run. docs/verify.md defines the
// tensors and tolerances.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace satformer::verify {

// The largest error of one kind in a case. Forward passes have logits, loss, intermediates, gradients; training runs
// have loss, grad_norm, final_parameters (single entries) and final_parameters_norm (whole tensors).
struct Check {
  std::string kind;
  double error = 0;  // infinity where a value is not finite
  double tolerance = 0;
  std::string tensor;  // where the error is

  bool passed() const { return error <= tolerance; }
};

struct CaseResult {
  std::string name;           // the folder's
  std::vector<Check> checks;  // empty where the case failed or was skipped
  std::string failure;        // why it could not be compared: a missing tensor, a wrong shape, ...
  std::string skipped;        // why it was not run: an architecture that this build lacks

  bool passed() const;
};

struct Report {
  std::vector<CaseResult> cases;

  // At least one case ran, and each that ran passed.
  bool passed() const;
};

// Each folder is a case, or holds cases one level below. Cases of unknown architectures are skipped when their folder
// was found inside another one; given directly they are an Error, as is a folder without cases.
Report run_cases(const std::vector<std::filesystem::path>& folders);

// The table that `satformer verify` prints.
std::string format_table(const Report& report);

// {"passed", "cases": [{"name", "passed", "errors": {KIND: VALUE}}], "skipped": [{"name", "reason"}]}; a case that
// could not be compared has "failure"; an error that is not finite is null.
nlohmann::json to_json(const Report& report);

}  // namespace satformer::verify
