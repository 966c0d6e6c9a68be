#pragma once
// Free of torch headers: the CUDA kernels read it too.
namespace satformer::ops {

// How a layer joins the first layer's values v1 to its own values v.
enum class ValueMix {
  kNone,       // v
  kSelective,  // v + gate(logits) v1
  kStatic,     // lambda1 v1 + lambda2 v
};

}  // namespace satformer::ops
