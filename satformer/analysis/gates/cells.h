#pragma once
// Walks over the layers and heads of a collector.
#include <cstdint>
#include <vector>

#include "satformer/analysis/gates/collector.h"
#include "satformer/analysis/gates/summary.h"

namespace satformer::analysis {

// `numbers_of(index, first_cell)` of each layer: its index in GateShape::layers, the cell of its first head.
template <typename NumbersOf>
auto by_layer(const GateShape& shape, NumbersOf numbers_of) {
  std::vector<OfLayer<decltype(numbers_of(std::int64_t{}, std::int64_t{}))>> layers;
  for (const std::int64_t layer : shape.layers) {
    const auto index = static_cast<std::int64_t>(layers.size());
    layers.push_back({numbers_of(index, index * shape.heads), layer});
  }
  return layers;
}

// `numbers_of(cell)` of each head.
template <typename NumbersOf>
auto by_head(const GateShape& shape, NumbersOf numbers_of) {
  std::vector<OfHead<decltype(numbers_of(std::int64_t{}))>> heads;
  for (std::int64_t cell = 0; cell < shape.cells(); ++cell) {
    heads.push_back({numbers_of(cell), shape.layers[static_cast<std::size_t>(cell / shape.heads)], cell % shape.heads});
  }
  return heads;
}

}  // namespace satformer::analysis
