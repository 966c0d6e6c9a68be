#pragma once
// The one list of architectures. A line X(NAME) stands for the folder satformer/models/NAME, with one function a file:
//   facts.cpp   NAME_facts           what it is called, what kind it is, its configuration keys; without torch
//   model.cpp   make_NAME            the model
//   script.cpp  write_NAME_script    the model as TorchScript
// Names, constructors, export, help, the table of keys, the check of configs/ and the tests' loops follow from the
// list.
#include <memory>

#define SATFORMER_ARCHITECTURES(X) \
  X(transformer)                   \
  X(resformer)                     \
  X(satformer)                     \
  X(denseformer)                   \
  X(muddformer)                    \
  X(hyperconnections)

namespace c10 {
struct TensorOptions;
}

namespace satformer::models {

struct Architecture;
class LanguageModel;
struct ModelConfig;
struct ScriptNode;

#define SATFORMER_DECLARE_ARCHITECTURE(name)                                                                \
  Architecture name##_facts();                                                                              \
  std::shared_ptr<LanguageModel> make_##name(const ModelConfig& config, const c10::TensorOptions& tensors); \
  void write_##name##_script(ScriptNode& root, const ModelConfig& config);
SATFORMER_ARCHITECTURES(SATFORMER_DECLARE_ARCHITECTURE)
#undef SATFORMER_DECLARE_ARCHITECTURE

}  // namespace satformer::models
