#pragma once
// Made-up gates, given to a collector in batches, that stay at hand to be counted again.
#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "satformer/analysis/gates/collector.h"

namespace satformer::analysis {

constexpr std::int64_t kHeads = 3, kTokens = 500, kIds = 11, kBlocks = 5;

// 500 tokens of 2 layers with 3 heads, given to a collector in batches of 64 rows of which the last ones do not count.
struct Synthetic {
  GateCollector collector{{.layers = {1, 4},
                           .heads = kHeads,
                           .vocab_size = kIds,
                           .position_buckets = 6,
                           .classes = 0,
                           .blocks = kBlocks,
                           .text_tokens = 70},
                          {}};
  std::vector<TokenRow> rows;
  std::vector<std::vector<float>> alpha{2, std::vector<float>(kTokens * kHeads)};

  explicit Synthetic(std::int64_t classes) {
    GateShape shape = collector.shape();
    shape.classes = classes;
    collector = GateCollector(shape, {});
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < kTokens; ++i) {
      rows.push_back({.row = i,
                      .index = i,
                      .id = static_cast<std::int64_t>(random() % kIds),
                      .bucket = position_bucket(i % 32),
                      .token_class = classes > 0 ? static_cast<std::int64_t>(random()) & 1 : 0,
                      .block = i / 100});
    }
    for (std::vector<float>& layer : alpha) {
      for (std::size_t i = 0; i < layer.size(); ++i) {
        layer[i] = std::max(0.0f, normal(random) + 0.4f * static_cast<float>(rows[i / kHeads].token_class));
      }
    }
    give(64);
  }

  void give(std::int64_t batch) {
    for (std::int64_t begin = 0; begin < kTokens; begin += batch) {
      const std::int64_t count = std::min(batch, kTokens - begin);
      std::vector<TokenRow> part(rows.begin() + begin, rows.begin() + begin + count);
      for (TokenRow& row : part) row.row -= begin;
      collector.begin_batch(std::move(part));
      for (std::int64_t layer = 0; layer < 2; ++layer) {
        std::vector<float> values(static_cast<std::size_t>(batch * kHeads), 99.0f);  // padding that must not count
        const auto from = alpha[static_cast<std::size_t>(layer)].begin() + begin * kHeads;
        std::copy(from, from + count * kHeads, values.begin());
        const std::vector<float> contribution(values.size(), 0.5f);
        collector.add(layer, values, contribution);
      }
    }
  }

  double value(std::int64_t cell, std::int64_t token) const {
    return alpha[static_cast<std::size_t>(cell / kHeads)][static_cast<std::size_t>(token * kHeads + cell % kHeads)];
  }
  // Mean over the tokens that `fits` and over cells [first, last).
  template <typename Fits>
  double mean(std::int64_t first, std::int64_t last, Fits&& fits) const {
    double sum = 0.0, count = 0.0;
    for (const TokenRow& row : rows) {
      for (std::int64_t cell = first; cell < last && fits(row); ++cell) sum += value(cell, row.index), count += 1.0;
    }
    return sum / count;
  }
};

}  // namespace satformer::analysis
