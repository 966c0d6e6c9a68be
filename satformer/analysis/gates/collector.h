#pragma once
// Everything that is told of a model's gates, gathered from a stream of tokens. Memory depends on the model and the
// settings alone: (layers x heads) x (bins + position buckets + classes x blocks + vocabulary + tokens of the sample).
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "satformer/analysis/gates/series.h"
#include "satformer/analysis/tokens/row.h"

namespace satformer::analysis {

struct GateShape {
  std::vector<std::int64_t> layers;  // the model's layers that have gates
  std::int64_t heads = 0;            // KV heads
  std::int64_t vocab_size = 0;
  std::int64_t position_buckets = 0;
  std::int64_t classes = 0;      // 0: none
  std::int64_t blocks = 0;       // of the bootstrap
  std::int64_t text_tokens = 0;  // the split's first tokens whose gates are kept one by one

  std::int64_t cells() const { return static_cast<std::int64_t>(layers.size()) * heads; }
};

// A cell is a layer's head: (index of the layer in GateShape::layers) * heads + head.
class GateCollector {
 public:
  GateCollector(GateShape shape, GateSettings settings);

  // The tokens of a batch, then for each layer their gates and contributions |alpha v1| / |v|, [B * T, heads] each.
  // Error names the layer of a gate that is not finite.
  void begin_batch(std::vector<TokenRow> rows);
  void add(std::int64_t layer_index, std::span<const float> alpha, std::span<const float> contribution);

  const GateShape& shape() const { return shape_; }
  const GateSettings& settings() const { return settings_; }
  std::int64_t tokens() const { return tokens_; }
  std::string cell_name(std::int64_t cell) const;  // "layer 3 head 0"

  const GateSeries& head(std::int64_t cell) const { return series_[static_cast<std::size_t>(cell)]; }
  GateSeries layer(std::int64_t layer_index) const;
  GateSeries model() const;

  // Sums over tokens of gates and of open gates.
  struct Sums {
    double alpha = 0.0, open = 0.0;
  };
  std::int64_t bucket_tokens(std::int64_t bucket) const { return bucket_tokens_[static_cast<std::size_t>(bucket)]; }
  const Sums& bucket_sums(std::int64_t cell, std::int64_t bucket) const;
  // [blocks] of a class.
  std::span<const double> class_tokens(std::int64_t token_class) const;
  std::span<const double> class_alpha(std::int64_t cell, std::int64_t token_class) const;
  std::span<const double> class_open(std::int64_t cell, std::int64_t token_class) const;
  // By token id.
  std::int64_t id_tokens(std::int64_t id) const { return id_tokens_[static_cast<std::size_t>(id)]; }
  double id_mean(std::int64_t cell, std::int64_t id) const;
  // The sample: ids of its tokens, the gate of one.
  const std::vector<std::int64_t>& text_ids() const { return text_ids_; }
  const std::vector<std::int64_t>& text_classes() const { return text_classes_; }
  float text_alpha(std::int64_t cell, std::int64_t token) const;

 private:
  std::size_t class_offset(std::int64_t cell, std::int64_t token_class) const;

  GateShape shape_;
  GateSettings settings_;
  std::int64_t tokens_ = 0;
  std::vector<TokenRow> rows_;
  std::vector<GateSeries> series_;                // [cell]
  std::vector<std::int64_t> bucket_tokens_;       // [bucket]
  std::vector<Sums> bucket_sums_;                 // [cell, bucket]
  std::vector<double> class_tokens_;              // [class, block]
  std::vector<double> class_alpha_, class_open_;  // [cell, class, block]
  std::vector<std::int64_t> id_tokens_;           // [id]
  std::vector<double> id_alpha_;                  // [id, cell]
  std::vector<std::int64_t> text_ids_, text_classes_;
  std::vector<float> text_alpha_;  // [token, cell]
};

}  // namespace satformer::analysis
