#pragma once
// One case of reference vectors (satformer/verify/verify.h) and how its tensors are compared.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "satformer/models/language_model.h"
#include "satformer/runtime/safetensors.h"
#include "satformer/verify/verify.h"

namespace satformer::verify {

constexpr const char* kCaseConfigFile = "config.json";
constexpr const char* kCaseTensorsFile = "golden.safetensors";

struct ReferenceCase {
  std::string source;  // the tensors' file, for errors
  models::ModelConfig config;
  Safetensors file;

  bool is_training_run() const { return file.tensors.contains("batches"); }
  // Error where the file has no such tensor, or no such metadata.
  const at::Tensor& tensor(const std::string& name) const;
  const std::string& metadata(const std::string& name) const;
  // The names that begin with `prefix`, without it.
  std::vector<std::string> names_below(std::string_view prefix) const;
};

// The architecture that a case's config.json names, in its spelling.
std::string declared_architecture(const std::filesystem::path& folder);

ReferenceCase load_reference_case(const std::filesystem::path& folder);

// The model with the parameters `prefix`NAME of the file. Error where a parameter is missing, has another shape or
// dtype, or where `names`, the file's parameters, hold one that the model has not.
std::shared_ptr<models::LanguageModel> load_reference_model(const ReferenceCase& reference, const std::string& prefix,
                                                            const std::vector<std::string>& names);

// max |actual - expected| / scale, scale = max |expected| unless given. 0 where both are 0, infinity where anything is
// not finite. Error where the shapes differ.
double relative_error(const at::Tensor& actual, const at::Tensor& expected, std::string_view name);
double relative_error(const at::Tensor& actual, const at::Tensor& expected, double scale, std::string_view name);

// Collects the largest error of one kind.
class LargestError {
 public:
  LargestError(std::string kind, double tolerance) : check_{std::move(kind), 0, tolerance, ""} {}
  void add(double error, const std::string& tensor);
  const Check& check() const { return check_; }

 private:
  Check check_;
};

// What the case's metadata float64_agreement says after `label`: how far float32 itself is from float64. Of several
// numbers the largest counts; a tensor's name may follow in parentheses.
struct Disagreement {
  double figure = 0;
  std::string tensor;
};
std::optional<Disagreement> float64_disagreement(const ReferenceCase& reference, std::string_view label);

// The tolerance, or ten times the figure after `label` where float32 itself misses the tolerance.
double tolerance_for(const ReferenceCase& reference, double tolerance, std::string_view label);

// The checks of a forward case (verify_forward.cpp) and of a training run (verify_training.cpp).
std::vector<Check> check_forward(const ReferenceCase& reference);
std::vector<Check> check_training(const ReferenceCase& reference);

}  // namespace satformer::verify
