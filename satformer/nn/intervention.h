#pragma once
// Changes what a model does with its first values while it runs.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace satformer::nn {

class Intervention {
 public:
  virtual ~Intervention() = default;
  // What layer `layer` multiplies the first values with, alpha [B, T, H_kv], float32 (float64 in a float64 model): the
  // gates of a selective mix, lambda1 for every token and head of a static one. Returns what takes its place, of the
  // same shape; undefined: alpha stays. Where it is exactly 0, the first values are not read.
  virtual at::Tensor first_value_weights(std::int64_t layer, const at::Tensor& alpha) = 0;
};

}  // namespace satformer::nn
