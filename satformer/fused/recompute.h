#pragma once
// Activation checkpointing: keep a segment's inputs instead of its activations, and run it again in the backward pass.
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace satformer::nn {

using Segment = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

// Returns segment(inputs). Every tensor the segment computes gradients for must be among `inputs` or `parameters`;
// `inputs` are what changes between calls (some may be undefined), `parameters` are used by the segment directly.
// The gradients are those of the plain call bit for bit: the segment runs under the autocast state of the first run,
// and must be deterministic (no dropout). It is run once only where no gradient is being recorded.
// Second derivatives (create_graph) are an Error.
std::vector<at::Tensor> checkpoint(const Segment& segment, const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& parameters);

}  // namespace satformer::nn
