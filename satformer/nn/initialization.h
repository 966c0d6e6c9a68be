#pragma once
// Random initial parameters that depend on the seed and the parameter's name alone: not on the order in which a model
// makes its parameters, on the number of threads or on the CPU's vector width. So architectures that share a
// parameter (model.layers.0.attn.q_proj.weight) start from the same values.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace satformer::nn {

// Fills a float32 or float64 CPU tensor with N(0, std^2): Box-Muller in float64 from the generator of (seed, name).
// Does nothing to a tensor on the meta device.
void initialize_normal(at::Tensor& parameter, double std, std::uint64_t seed, std::string_view name);

}  // namespace satformer::nn
