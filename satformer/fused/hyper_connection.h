#pragma once
// Hyper-connections (csrc/ops/hyper_connection.h): the write of one module and the read of the next as one autograd
// node.
#include "csrc/ops/hyper_connection.h"

namespace satformer::fused {

// A read, with what it was read from and by which parameters.
struct HyperConnectionUse {
  at::Tensor residual_streams;  // [B, T, n, d]
  ops::HyperConnection parameters;
  ops::HyperConnectionRead read;
};

// hyper_connection_read(hyper_connection_write(use.read, output), next); `output` [B, T, d] is the module's. The
// streams between the two are not kept: the backward pass makes them again from use.residual_streams, which the first
// read keeps in any case. Takes use.read.mixed. Differentiable once.
ops::HyperConnectionRead write_and_read(HyperConnectionUse& use, const at::Tensor& output,
                                        const ops::HyperConnection& next);

}  // namespace satformer::fused
