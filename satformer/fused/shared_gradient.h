#pragma once
// A tensor that many later layers read. Autograd would make a gradient of its size for each reader and add them up two
// by two; here the readers add to one buffer.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

namespace satformer::fused {

// The buffer of one shared tensor: what its readers have sent back in the running backward pass.
class SharedGradient : public torch::CustomClassHolder {
 public:
  // Where to add a gradient of `like`'s shape, in `dtype` (the same from all readers): zeros for the first reader.
  at::Tensor& sum(const at::Tensor& like, at::ScalarType dtype);
  // The sum, undefined if nothing was added; the buffer is empty again.
  at::Tensor take();

 private:
  at::Tensor sum_;
};

// x for its readers; x itself where no gradient is recorded. A reader that knows of the buffer adds to it and returns
// no gradient for x; any other reader gets its gradient back to x by autograd as usual. Differentiable once.
at::Tensor fan_out(const at::Tensor& x);

// `copy`, cut out of the graph of a shared x (activation checkpointing does that): its readers add to x's buffer.
// `copy` itself where x is not shared.
at::Tensor fan_out_copy(const at::Tensor& copy, const at::Tensor& x);

// A reader's forward: the buffer of x; null where x is not shared.
c10::intrusive_ptr<SharedGradient> shared_gradient(const at::Tensor& x);

}  // namespace satformer::fused
