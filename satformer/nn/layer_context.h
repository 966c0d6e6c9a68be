#pragma once
// What a layer is told besides the tensors that it transforms.
#include <cstdint>

#include "satformer/nn/attention_context.h"
#include "satformer/nn/intervention.h"
#include "satformer/nn/observer.h"

namespace satformer::nn {

struct LayerContext {
  AttentionContext attention;
  std::int64_t layer = 0;
  // Which of two paths computes the layer. Fused: the nodes of satformer/fused, for speed. Else plain: the registered
  // operators and ATen under ordinary autograd, to read, to debug and to differentiate more than once. The modules,
  // their parameters and the numbers but for rounding are the same (docs/architectures.md).
  bool fused = true;
  Observer* observer = nullptr;          // sees the layer as its weights have it
  Intervention* intervention = nullptr;  // without gradients alone
};

}  // namespace satformer::nn
