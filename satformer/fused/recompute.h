#pragma once
// Activation recomputation: keep a layer's inputs instead of its activations, and run it again in the backward pass.
#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <type_traits>
#include <vector>

namespace satformer::fused {

using Segment = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

// Returns segment(inputs). Every tensor the segment computes gradients for must be among `inputs` or `parameters`;
// `inputs` are what changes between calls, `parameters` are used by the segment directly. Some inputs and outputs may
// be undefined. The gradients are those of the plain call bit for bit: the segment runs under the autocast state of the
// first run, and must be deterministic (no dropout). It is run once only where no gradient is being recorded.
// Second derivatives (create_graph) are an Error.
std::vector<at::Tensor> recompute(const Segment& segment, const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters);

// A struct of tensors lists them in a function tensors_of(struct&), found beside it. The order is the one in which the
// backward pass reaches them, so that gradients add up alike.
inline std::array<at::Tensor*, 1> tensors_of(at::Tensor& x) { return {&x}; }

template <typename Fields>
std::vector<at::Tensor> flattened(Fields fields) {
  std::vector<at::Tensor> result;
  for (const at::Tensor* x : tensors_of(fields)) result.push_back(*x);
  return result;
}

template <typename Fields>
Fields unflattened(const std::vector<at::Tensor>& tensors) {
  Fields fields;
  auto next = tensors.begin();
  for (at::Tensor* x : tensors_of(fields)) *x = *next++;
  return fields;
}

// Returns layer->forward(input, context), by recompute(): `input` and what forward() returns are structs of tensors,
// `context` is handed on as it is.
template <typename Layer, typename Input, typename Context>
auto recompute_layer(Layer& layer, const Input& input, const Context& context) {
  using Output = std::decay_t<decltype(layer->forward(input, context))>;
  const Segment segment = [layer, context](const std::vector<at::Tensor>& inputs) mutable {
    return flattened(layer->forward(unflattened<Input>(inputs), context));
  };
  return unflattened<Output>(recompute(segment, flattened(input), layer->parameters()));
}

}  // namespace satformer::fused
