#include "satformer/analysis/gates/collector.h"

#include <cmath>
#include <utility>

#include "satformer/core/error.h"

namespace satformer::analysis {

GateCollector::GateCollector(GateShape shape, GateSettings settings)
    : shape_(std::move(shape)), settings_(std::move(settings)) {
  const auto cells = static_cast<std::size_t>(shape_.cells());
  const auto buckets = static_cast<std::size_t>(shape_.position_buckets);
  const auto class_blocks = static_cast<std::size_t>(shape_.classes * shape_.blocks);
  const auto ids = static_cast<std::size_t>(shape_.vocab_size);
  series_.assign(cells, GateSeries(settings_));
  bucket_tokens_.resize(buckets);
  bucket_sums_.resize(cells * buckets);
  class_tokens_.resize(class_blocks);
  class_alpha_.resize(cells * class_blocks);
  class_open_.resize(cells * class_blocks);
  id_tokens_.resize(ids);
  id_alpha_.resize(ids * cells);
  text_alpha_.resize(static_cast<std::size_t>(shape_.text_tokens) * cells);
}

void GateCollector::begin_batch(std::vector<TokenRow> rows) {
  rows_ = std::move(rows);
  tokens_ += static_cast<std::int64_t>(rows_.size());
  for (const TokenRow& row : rows_) {
    ++bucket_tokens_[static_cast<std::size_t>(row.bucket)];
    ++id_tokens_[static_cast<std::size_t>(row.id)];
    if (shape_.classes > 0) {
      class_tokens_[static_cast<std::size_t>(row.token_class * shape_.blocks + row.block)] += 1.0;
    }
    if (row.index < shape_.text_tokens) {
      text_ids_.push_back(row.id);
      text_classes_.push_back(row.token_class);
    }
  }
}

void GateCollector::add(std::int64_t layer_index, std::span<const float> alpha, std::span<const float> contribution) {
  const std::int64_t heads = shape_.heads, cells = shape_.cells();
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t cell = layer_index * heads + head;
    GateSeries& series = series_[static_cast<std::size_t>(cell)];
    Sums* buckets = &bucket_sums_[static_cast<std::size_t>(cell * shape_.position_buckets)];
    for (const TokenRow& row : rows_) {
      const auto at = static_cast<std::size_t>(row.row * heads + head);
      const float value = alpha[at];
      require(std::isfinite(value), "the gate of {} is not finite at token {} of the data", cell_name(cell), row.index);
      series.add(value, contribution[at]);
      const double open = std::abs(static_cast<double>(value)) > settings_.open_above ? 1.0 : 0.0;
      buckets[row.bucket].alpha += value;
      buckets[row.bucket].open += open;
      if (shape_.classes > 0) {
        const std::size_t place = class_offset(cell, row.token_class) + static_cast<std::size_t>(row.block);
        class_alpha_[place] += value;
        class_open_[place] += open;
      }
      id_alpha_[static_cast<std::size_t>(row.id * cells + cell)] += value;
      if (row.index < shape_.text_tokens) text_alpha_[static_cast<std::size_t>(row.index * cells + cell)] = value;
    }
  }
}

std::string GateCollector::cell_name(std::int64_t cell) const {
  return fmt::format("layer {} head {}", shape_.layers[static_cast<std::size_t>(cell / shape_.heads)],
                     cell % shape_.heads);
}

GateSeries GateCollector::layer(std::int64_t layer_index) const {
  GateSeries sum(settings_);
  for (std::int64_t head = 0; head < shape_.heads; ++head) {
    sum.merge(series_[static_cast<std::size_t>(layer_index * shape_.heads + head)]);
  }
  return sum;
}

GateSeries GateCollector::model() const {
  GateSeries sum(settings_);
  for (const GateSeries& series : series_) sum.merge(series);
  return sum;
}

const GateCollector::Sums& GateCollector::bucket_sums(std::int64_t cell, std::int64_t bucket) const {
  return bucket_sums_[static_cast<std::size_t>(cell * shape_.position_buckets + bucket)];
}

std::size_t GateCollector::class_offset(std::int64_t cell, std::int64_t token_class) const {
  return static_cast<std::size_t>((cell * shape_.classes + token_class) * shape_.blocks);
}

std::span<const double> GateCollector::class_tokens(std::int64_t token_class) const {
  return std::span(class_tokens_).subspan(class_offset(0, token_class), static_cast<std::size_t>(shape_.blocks));
}

std::span<const double> GateCollector::class_alpha(std::int64_t cell, std::int64_t token_class) const {
  return std::span(class_alpha_).subspan(class_offset(cell, token_class), static_cast<std::size_t>(shape_.blocks));
}

std::span<const double> GateCollector::class_open(std::int64_t cell, std::int64_t token_class) const {
  return std::span(class_open_).subspan(class_offset(cell, token_class), static_cast<std::size_t>(shape_.blocks));
}

double GateCollector::id_mean(std::int64_t cell, std::int64_t id) const {
  return id_alpha_[static_cast<std::size_t>(id * shape_.cells() + cell)] / static_cast<double>(id_tokens(id));
}

float GateCollector::text_alpha(std::int64_t cell, std::int64_t token) const {
  return text_alpha_[static_cast<std::size_t>(token * shape_.cells() + cell)];
}

}  // namespace satformer::analysis
