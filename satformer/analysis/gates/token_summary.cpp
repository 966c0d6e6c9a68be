#include "satformer/analysis/gates/token_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "satformer/analysis/gates/cells.h"

namespace satformer::analysis {
namespace {

void round(CategoryEstimate& estimate) {
  estimate.mean = rounded(estimate.mean);
  estimate.open_share = rounded(estimate.open_share);
}

CategoryEstimates all_rounded(CategoryEstimates estimates) {
  for (auto& [unused, estimate] : estimates.classes) round(estimate);
  for (auto& [unused, estimate] : estimates.groups) round(estimate);
  round(estimates.all);
  round(estimates.contrast);
  return estimates;
}

std::vector<CountedClass> count_classes(const GateCollector& collector, const TokenCategories& categories) {
  std::vector<CountedClass> counted;
  for (const TokenClass& one : categories.classes()) {
    double tokens = 0.0;
    for (const double count : collector.class_tokens(static_cast<std::int64_t>(counted.size()))) tokens += count;
    counted.push_back({one.name, one.group, static_cast<std::int64_t>(tokens)});
  }
  return counted;
}

std::string label_of(const TokenClassifier* classifier, std::int64_t id) {
  return classifier == nullptr ? fmt::format("#{}", id) : classifier->label(id);
}

using MeanOfId = std::pair<double, std::int64_t>;

std::vector<ListedToken> listed(const GateCollector& collector, const TokenClassifier* classifier,
                                const std::vector<MeanOfId>& sorted, std::int64_t wanted) {
  std::vector<ListedToken> list;
  const auto count = std::min<std::size_t>(sorted.size(), static_cast<std::size_t>(wanted));
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [mean, id] = sorted[i];
    list.push_back({id, label_of(classifier, id), rounded(mean), collector.id_tokens(id)});
  }
  return list;
}

}  // namespace

CategorySummary summarize_categories(const GateCollector& collector, const TokenCategories& categories,
                                     const BootstrapOptions& options) {
  const GateShape& shape = collector.shape();
  const BlockBootstrap bootstrap(shape.blocks, options);
  const auto estimates = [&](std::int64_t first_cell, std::int64_t cells) {
    return all_rounded(category_estimates(collector, categories, bootstrap, first_cell, cells));
  };
  const auto group = [&](int index) { return categories.groups()[static_cast<std::size_t>(index)]; };
  return {.name = categories.name(),
          .sources = categories.sources(),
          .contrast = {group(categories.contrast().first), group(categories.contrast().second)},
          .blocks = shape.blocks,
          .bootstrap = options,
          .classes = count_classes(collector, categories),
          .model = estimates(0, shape.cells()),
          .layers = by_layer(shape,
                             [&](std::int64_t, std::int64_t first_cell) { return estimates(first_cell, shape.heads); }),
          .heads = by_head(shape, [&](std::int64_t cell) { return estimates(cell, 1); })};
}

TokenList list_tokens(const GateCollector& collector, const TokenClassifier* classifier,
                      const GateSummaryOptions& options) {
  const auto tokens_of = [&](std::int64_t cell) {
    std::vector<MeanOfId> means;
    for (std::int64_t id = 0; id < collector.shape().vocab_size; ++id) {
      if (collector.id_tokens(id) >= options.min_token_count) means.emplace_back(collector.id_mean(cell, id), id);
    }
    ListedTokens tokens;
    std::sort(means.begin(), means.end());  // those of equal means by id
    tokens.bottom = listed(collector, classifier, means, options.listed_tokens);
    std::sort(means.begin(), means.end(), [](const MeanOfId& a, const MeanOfId& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    tokens.top = listed(collector, classifier, means, options.listed_tokens);
    return tokens;
  };
  return {.min_count = options.min_token_count, .heads = by_head(collector.shape(), tokens_of)};
}

TextSummary text_sample(const GateCollector& collector, const TokenClassifier* classifier) {
  TextSummary text;
  for (std::size_t i = 0; i < collector.text_ids().size(); ++i) {
    text.pieces.push_back(label_of(classifier, collector.text_ids()[i]));
    if (classifier == nullptr) continue;
    const auto token_class = static_cast<std::size_t>(collector.text_classes()[i]);
    text.classes.push_back(classifier->categories().classes()[token_class].name);
  }
  const std::int64_t heads = collector.shape().heads, tokens = static_cast<std::int64_t>(text.pieces.size());
  text.gates = by_layer(collector.shape(), [&](std::int64_t, std::int64_t first_cell) {
    LayerText layer;
    for (std::int64_t cell = first_cell; cell < first_cell + heads; ++cell) {
      std::vector<double>& values = layer.heads.emplace_back();
      for (std::int64_t t = 0; t < tokens; ++t) values.push_back(rounded(collector.text_alpha(cell, t)));
    }
    return layer;
  });
  return text;
}

}  // namespace satformer::analysis
