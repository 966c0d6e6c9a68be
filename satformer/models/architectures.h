#pragma once
// The one list of architectures. A new one is a pair of files and a line in architectures.cpp.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace c10 {
struct TensorOptions;
}

namespace satformer::models {

class LanguageModel;
struct ModelConfig;

struct Architecture {
  std::string name;        // ours: "satformer"
  std::string model_type;  // in a published config.json: "SATFormer"
  std::string class_name;  // in a published config's class_name or architectures: "SATFormerForCausalLM"
  std::vector<std::string> aliases;
  std::vector<std::string> keys;  // those that not every architecture has
  std::shared_ptr<LanguageModel> (*make)(const ModelConfig& config, const c10::TensorOptions& tensors);
};

const std::vector<Architecture>& architectures();

// By name, model_type, class_name or alias, case-insensitive; null when there is none.
const Architecture* find_architecture(std::string_view spelling);

// As find_architecture; Error names `source` and lists the known ones.
const Architecture& architecture_from_name(std::string_view spelling, std::string_view source);

}  // namespace satformer::models
