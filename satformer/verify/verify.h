#pragma once
// Compares this implementation with reference vectors made elsewhere: a case is a folder with config.json and
// golden.safetensors, either one forward pass with every gradient or a short training run. docs/verify.md defines the
// tensors and tolerances.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace satformer::train {

// The largest error of one kind in a case. Forward passes have logits, loss, intermediates, gradients; training runs
// have loss, grad_norm, final_parameters (single entries) and final_parameters_norm (whole tensors).
struct VerifyCheck {
  std::string kind;
  double error = 0;  // infinity where a value is not finite
  double tolerance = 0;
  std::string tensor;  // where the error is

  bool passed() const { return error <= tolerance; }
};

struct VerifyCase {
  std::string name;                 // the folder's
  std::vector<VerifyCheck> checks;  // empty where the case failed or was skipped
  std::string failure;              // why it could not be compared: a missing tensor, a wrong shape, ...
  std::string skipped;              // why it was not run: an architecture that this build lacks

  bool passed() const;
};

struct VerifyReport {
  std::vector<VerifyCase> cases;

  // At least one case ran, and each that ran passed.
  bool passed() const;
};

// Each folder is a case, or holds cases one level below. Cases of unknown architectures are skipped when their folder
// was found inside another one; given directly they are an Error, as is a folder without cases.
VerifyReport verify(const std::vector<std::filesystem::path>& folders);

// The table that `satformer verify` prints.
std::string verify_table(const VerifyReport& report);

// {"passed", "cases": [{"name", "passed", "errors": {KIND: VALUE}}], "skipped": [{"name", "reason"}]}; a case that
// could not be compared has "failure"; an error that is not finite is null.
nlohmann::json verify_json(const VerifyReport& report);

}  // namespace satformer::train
