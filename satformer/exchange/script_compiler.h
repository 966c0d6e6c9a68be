#pragma once
// From a node's text to a TorchScript module.
#include "satformer/models/script/node.h"

namespace torch::jit {
struct Module;
}

namespace satformer::exchange {

// Compiles a node and all below it. Nodes of one class, code and layout share one TorchScript class, as modules made by
// torch.jit.script do. What the text may name besides methods and attributes:
//   torch.X                 an operator of ATen
//   ops.satformer.X         an operator of ours, spelled as in the code that torch::jit::save writes
//   Sequence, Gating        named tuples:
//     Sequence  cos, sin: Tensor; mask: Optional[Tensor]; causal: bool; caches: List[Tensor];
//               kept: Optional[List[Tensor]]
//     Gating    scale, shift: Tensor; found: Optional[List[Tensor]]
// The parameters are the node's tensors, not copies. The module is in evaluation mode.
torch::jit::Module compile(const models::ScriptNode& root);

}  // namespace satformer::exchange
