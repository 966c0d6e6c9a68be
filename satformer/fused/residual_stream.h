#pragma once
// The residual stream between layers. A branch's output is not added at once: the norm that reads the stream next adds
// it in the same pass.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

namespace satformer::fused {

struct ResidualStream {
  at::Tensor sum;           // [B, T, d]
  at::Tensor pending = {};  // [B, T, d], what is still to be added; undefined: nothing

  at::Tensor value() const { return pending.defined() ? sum + pending : sum; }
};

}  // namespace satformer::fused
