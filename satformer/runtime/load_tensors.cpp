#include "satformer/runtime/load_tensors.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "satformer/core/error.h"

namespace satformer::optim {
namespace {

constexpr std::size_t kMaxNamed = 8;  // mismatches that a message spells out

std::string describe(const at::Tensor& tensor) {
  return fmt::format("{} [{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

std::vector<std::string> mismatches(const std::map<std::string, at::Tensor>& into,
                                    const std::map<std::string, at::Tensor>& from) {
  std::vector<std::string> found;
  for (const auto& [name, tensor] : into) {
    const auto other = from.find(name);
    if (other == from.end()) {
      found.push_back(fmt::format("{} is missing", name));
    } else if (other->second.sizes() != tensor.sizes() || other->second.scalar_type() != tensor.scalar_type()) {
      found.push_back(fmt::format("{} is {}, expected {}", name, describe(other->second), describe(tensor)));
    }
  }
  for (const auto& [name, tensor] : from) {
    if (into.count(name) == 0) found.push_back(fmt::format("{} {} is not expected", name, describe(tensor)));
  }
  return found;
}

}  // namespace

void require_same_tensors(const std::map<std::string, at::Tensor>& into, const std::map<std::string, at::Tensor>& from,
                          const std::string& source) {
  std::vector<std::string> found = mismatches(into, from);
  if (!found.empty()) {
    const std::size_t more = found.size() > kMaxNamed ? found.size() - kMaxNamed : 0;
    found.resize(found.size() - more);
    fail("{}: {}{}", source, fmt::join(found, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
  }
}

void copy_tensors(const std::map<std::string, at::Tensor>& into, const std::map<std::string, at::Tensor>& from,
                  const std::string& source) {
  require_same_tensors(into, from, source);
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : into) tensor.copy_(from.at(name));
}

}  // namespace satformer::optim
