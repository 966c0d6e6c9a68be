#pragma once
// A TorchScript module before it is compiled: its parameters, constants and the text of its methods.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch::jit {
struct Module;
}

namespace satformer::exchange {

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

// Compiles a node and all below it. Nodes of one class, code and layout share one TorchScript class, as modules made by
// torch.jit.script do. What the text may name besides methods and attributes:
//   torch.X                 an operator of ATen
//   ops.satformer.X         an operator of ours, spelled as in the code that torch::jit::save writes
//   Sequence, Gating        named tuples:
//     Sequence  cos, sin: Tensor; mask: Optional[Tensor]; causal: bool; caches: List[Tensor];
//               kept: Optional[List[Tensor]]
//     Gating    scale, shift: Tensor; found: Optional[List[Tensor]]
// The parameters are the node's tensors, not copies. The module is in evaluation mode.
torch::jit::Module compile(const ScriptNode& root);

}  // namespace satformer::exchange
