#include "satformer/models/architectures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"
#include "satformer/models/architecture_list.h"

namespace satformer::models {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

const std::vector<Architecture>& architectures() {
#define SATFORMER_FACTS(name) name##_facts(),
  static const std::vector<Architecture> list{SATFORMER_ARCHITECTURES(SATFORMER_FACTS)};
#undef SATFORMER_FACTS
  return list;
}

const Architecture& baseline() { return architectures().front(); }

const Architecture* find_architecture(std::string_view spelling) {
  for (const Architecture& architecture : architectures()) {
    const auto matches = [&](const std::string& name) { return same_word(name, spelling); };
    if (matches(architecture.name) || matches(architecture.model_type) || matches(architecture.class_name) ||
        std::any_of(architecture.aliases.begin(), architecture.aliases.end(), matches)) {
      return &architecture;
    }
  }
  return nullptr;
}

const Architecture& architecture_from_name(std::string_view spelling, std::string_view source) {
  const Architecture* architecture = find_architecture(spelling);
  require(architecture != nullptr, "{}: unknown architecture {}, expected one of {}", source, in_quotes(spelling),
          architecture_names());
  return *architecture;
}

std::string architecture_names() {
  std::string names;
  for (const Architecture& architecture : architectures()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", architecture.name);
  }
  return names;
}

const Architecture& architecture_of(const ModelConfig& config) {
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == config.architecture) return architecture;
  }
  return architecture_from_name(config.architecture, "model");
}

}  // namespace satformer::models
