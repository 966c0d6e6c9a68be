#include "satformer/verify/reference_case.h"

#include <ATen/ops/isfinite.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer::verify {
namespace {

std::string shape_text(const at::Tensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")); }

std::string existing_file(const std::filesystem::path& folder, const char* name) {
  const std::filesystem::path path = folder / name;
  require(std::filesystem::exists(path), "{}: missing; a case needs {} and {}", path.string(), kCaseConfigFile,
          kCaseTensorsFile);
  return path.string();
}

}  // namespace

const at::Tensor& ReferenceCase::tensor(const std::string& name) const {
  const auto found = file.tensors.find(name);
  require(found != file.tensors.end(), "{}: tensor {} is missing", source, name);
  return found->second;
}

const std::string& ReferenceCase::metadata(const std::string& name) const {
  const auto found = file.metadata.find(name);
  require(found != file.metadata.end(), "{}: metadata {} is missing", source, name);
  return found->second;
}

std::vector<std::string> ReferenceCase::names_below(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

std::string declared_architecture(const std::filesystem::path& folder) {
  const std::string path = existing_file(folder, kCaseConfigFile);
  return models::declared_architecture(read_file(path), path);
}

ReferenceCase load_reference_case(const std::filesystem::path& folder) {
  const std::string config = existing_file(folder, kCaseConfigFile);
  const std::string tensors = existing_file(folder, kCaseTensorsFile);
  return {tensors, models::parse_model_config(read_file(config), config), read_safetensors(tensors)};
}

std::shared_ptr<models::LanguageModel> load_reference_model(const ReferenceCase& reference, const std::string& prefix,
                                                            const std::vector<std::string>& names) {
  const std::shared_ptr<models::LanguageModel> model = models::make_uninitialized_model(reference.config);
  std::set<std::string> unused(names.begin(), names.end());
  const at::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) {
    const at::Tensor& stored = reference.tensor(prefix + parameter.key());
    require(stored.sizes() == parameter.value().sizes() && stored.scalar_type() == at::kFloat,
            "{}: tensor {} must be Float {}, got {} {}", reference.source, prefix + parameter.key(),
            shape_text(parameter.value()), toString(stored.scalar_type()), shape_text(stored));
    parameter.value().copy_(stored);
    unused.erase(parameter.key());
  }
  require(unused.empty(), "{}: tensor {} is neither a parameter of this {} nor a known reference value",
          reference.source, unused.empty() ? "" : prefix + *unused.begin(), reference.config.architecture);
  return model;
}

double relative_error(const at::Tensor& actual, const at::Tensor& expected, double scale, std::string_view name) {
  require(actual.sizes() == expected.sizes(), "tensor {}: expected the shape {} of the reference, got {}", name,
          shape_text(expected), shape_text(actual));
  if (actual.numel() == 0) return 0;
  const at::Tensor difference = (actual.to(at::kDouble) - expected.to(at::kDouble)).abs();
  const auto largest = difference.max().item<double>();
  if (!at::isfinite(difference).all().item<bool>()) return std::numeric_limits<double>::infinity();
  return largest == 0 ? 0 : largest / scale;  // infinity where only the reference is 0
}

double relative_error(const at::Tensor& actual, const at::Tensor& expected, std::string_view name) {
  const double scale = expected.numel() == 0 ? 1 : expected.abs().max().item<double>();
  return relative_error(actual, expected, scale, name);
}

void LargestError::add(double error, const std::string& tensor) {
  if (check_.tensor.empty() || error > check_.error) {
    check_.error = error;
    check_.tensor = tensor;
  }
}

std::optional<Disagreement> float64_disagreement(const ReferenceCase& reference, std::string_view label) {
  const auto agreement = reference.file.metadata.find("float64_agreement");
  if (agreement == reference.file.metadata.end()) return std::nullopt;
  const std::size_t found = agreement->second.find(label);
  if (found == std::string::npos) return std::nullopt;
  const char* position = agreement->second.c_str() + found + label.size();
  std::optional<Disagreement> result;
  for (char* end = nullptr;; position = end) {
    const double figure = std::strtod(position, &end);
    if (end == position) break;
    if (!result || figure > result->figure) result = {figure, ""};
  }
  const std::string_view rest(position);
  if (result && rest.starts_with(" (")) result->tensor = rest.substr(2, rest.find(')') - 2);
  return result;
}

double tolerance_for(const ReferenceCase& reference, double tolerance, std::string_view label) {
  const auto disagreement = float64_disagreement(reference, label);
  return disagreement && disagreement->figure > tolerance ? 10 * disagreement->figure : tolerance;
}

}  // namespace satformer::verify
