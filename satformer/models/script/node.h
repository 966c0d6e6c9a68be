#pragma once
// A TorchScript module before it is compiled (exchange/script_compiler.h): its parameters, constants and the text of
// its methods.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace satformer::models {

struct NamedNode;

struct ScriptNode {
  std::string class_name = "Module";  // __torch__.satformer.CLASS_NAME in a saved file
  std::string code;                   // methods; indented by four spaces, `def` in the first column
  std::vector<std::pair<std::string, at::Tensor>> parameters, buffers;
  std::vector<std::pair<std::string, c10::IValue>> constants;  // attributes that are no tensors
  std::vector<NamedNode> children;

  // The node below, by dotted path ("layers.0.attn"); made where there is none, which ends all references to siblings.
  ScriptNode& child(std::string_view path);
  bool has_child(std::string_view name) const;
  bool has_parameter(std::string_view name) const;
};

struct NamedNode {
  std::string name;
  ScriptNode node;
};

}  // namespace satformer::models
