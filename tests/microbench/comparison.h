#pragma once
// An operator beside its composite reference: what the files of tests/microbench share.
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace satformer::microbench {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors& inputs)>;

struct Comparison {
  std::string name;  // with sizes and dtype
  std::function<Tensors()> make_inputs;
  Function by_operator, by_composite;  // the same outputs of the same inputs
  std::size_t constants = 0;           // the last inputs, so many, get no gradient
};

// Registers NAME/forward and NAME/both (forward and backward through autograd), each as /operator and /composite. The
// result is true: a file calls it for the value of a constant.
bool compare(const Comparison& comparison);

// Standard normal numbers.
at::Tensor normal(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat);
// "float32" or "bfloat16"
std::string name_of(at::ScalarType dtype);

}  // namespace satformer::microbench
