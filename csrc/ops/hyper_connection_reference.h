#pragma once
// The hyper-connections' read and write in plain ATen calls: the definitions that the kernels are held to. Any device,
// any floating dtype, any strides, any number of streams; differentiable any number of times.
#include <ATen/core/Tensor.h>

#include "csrc/ops/hyper_connection.h"

namespace satformer::ops {

// `kept` of the result is undefined.
HyperConnectionRead hyper_connection_read_reference(const at::Tensor& streams, const HyperConnection& parameters);
at::Tensor hyper_connection_write_reference(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out);

}  // namespace satformer::ops
