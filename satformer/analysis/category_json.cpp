// The parts of gate_json.h that tell of tokens: classes, the tokens with the largest and smallest gates, the sample.
#include <algorithm>
#include <utility>

#include "satformer/analysis/category_estimates.h"
#include "satformer/analysis/gate_json.h"
#include "satformer/analysis/json_number.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

json estimate_json(const Estimate& estimate) {
  if (!estimate.interval) return {{"value", json_number(estimate.value)}, {"low", nullptr}, {"high", nullptr}};
  return {{"value", json_number(estimate.value)},
          {"low", json_number(estimate.interval->low)},
          {"high", json_number(estimate.interval->high)}};
}

json category_json(const CategoryEstimate& estimate) {
  return {{"mean", estimate_json(estimate.mean)}, {"open_share", estimate_json(estimate.open_share)}};
}

json table_json(const CategoryTable& table, const TokenCategories& categories) {
  json classes = json::object(), groups = json::object();
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    classes[categories.classes()[i].name] = category_json(table.classes[i]);
  }
  for (std::size_t i = 0; i < table.groups.size(); ++i) {
    groups[categories.groups()[i]] = category_json(table.groups[i]);
  }
  return {{"classes", std::move(classes)},
          {"groups", std::move(groups)},
          {"all", category_json(table.all)},
          {"contrast", category_json(table.contrast)}};
}

json classes_json(const GateCollector& collector, const TokenCategories& categories) {
  json classes = json::array();
  for (std::size_t i = 0; i < categories.classes().size(); ++i) {
    double tokens = 0.0;
    for (const double count : collector.class_tokens(static_cast<std::int64_t>(i))) tokens += count;
    classes.push_back({{"name", categories.classes()[i].name},
                       {"group", categories.classes()[i].group},
                       {"tokens", static_cast<std::int64_t>(tokens)}});
  }
  return classes;
}

std::string label_of(const TokenClassifier* classifier, std::int64_t id) {
  return classifier == nullptr ? fmt::format("#{}", id) : classifier->label(id);
}

using MeanOfId = std::pair<double, std::int64_t>;

json means_json(const GateCollector& collector, const TokenClassifier* classifier, const std::vector<MeanOfId>& sorted,
                std::int64_t wanted) {
  json list = json::array();
  const auto count = std::min<std::size_t>(sorted.size(), static_cast<std::size_t>(wanted));
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [mean, id] = sorted[i];
    list.push_back({{"id", id},
                    {"piece", label_of(classifier, id)},
                    {"mean", json_number(mean)},
                    {"count", collector.id_tokens(id)}});
  }
  return list;
}

}  // namespace

json categories_json(const GateCollector& collector, const TokenCategories& categories,
                     const BootstrapOptions& options) {
  const GateShape& shape = collector.shape();
  const BlockBootstrap bootstrap(shape.blocks, options);
  json layers = json::array(), heads = json::array();
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const std::int64_t first_cell = static_cast<std::int64_t>(i) * shape.heads;
    json& layer = layers.emplace_back(
        table_json(category_table(collector, categories, bootstrap, first_cell, shape.heads), categories));
    layer["layer"] = shape.layers[i];
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      json& head = heads.emplace_back(
          table_json(category_table(collector, categories, bootstrap, first_cell + h, 1), categories));
      head["layer"] = shape.layers[i];
      head["head"] = h;
    }
  }
  const auto group = [&](int index) { return categories.groups()[static_cast<std::size_t>(index)]; };
  return {{"name", categories.name()},
          {"sources", categories.sources()},
          {"contrast", {group(categories.contrast().first), group(categories.contrast().second)}},
          {"bootstrap",
           {{"blocks", shape.blocks},
            {"resamples", options.resamples},
            {"confidence", options.confidence},
            {"seed", options.seed}}},
          {"classes", classes_json(collector, categories)},
          {"model", table_json(category_table(collector, categories, bootstrap, 0, shape.cells()), categories)},
          {"layers", std::move(layers)},
          {"heads", std::move(heads)}};
}

json listed_tokens_json(const GateCollector& collector, const TokenClassifier* classifier,
                        const GateJsonOptions& options) {
  const GateShape& shape = collector.shape();
  json heads = json::array();
  for (std::int64_t cell = 0; cell < shape.cells(); ++cell) {
    std::vector<MeanOfId> means;
    for (std::int64_t id = 0; id < shape.vocab_size; ++id) {
      if (collector.id_tokens(id) >= options.min_token_count) means.emplace_back(collector.id_mean(cell, id), id);
    }
    std::sort(means.begin(), means.end());  // those of equal means by id
    json& head = heads.emplace_back(
        json{{"layer", shape.layers[static_cast<std::size_t>(cell / shape.heads)]}, {"head", cell % shape.heads}});
    head["bottom"] = means_json(collector, classifier, means, options.listed_tokens);
    std::sort(means.begin(), means.end(), [](const MeanOfId& a, const MeanOfId& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    head["top"] = means_json(collector, classifier, means, options.listed_tokens);
  }
  return {{"min_count", options.min_token_count}, {"heads", std::move(heads)}};
}

json text_json(const GateCollector& collector, const TokenClassifier* classifier) {
  const GateShape& shape = collector.shape();
  json pieces = json::array(), classes = json::array(), layers = json::array();
  for (std::size_t i = 0; i < collector.text_ids().size(); ++i) {
    pieces.push_back(label_of(classifier, collector.text_ids()[i]));
    if (classifier == nullptr) continue;
    const auto token_class = static_cast<std::size_t>(collector.text_classes()[i]);
    classes.push_back(classifier->categories().classes()[token_class].name);
  }
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    json heads = json::array();
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      json values = json::array();
      for (std::int64_t t = 0; t < static_cast<std::int64_t>(pieces.size()); ++t) {
        values.push_back(json_number(collector.text_alpha(static_cast<std::int64_t>(i) * shape.heads + h, t)));
      }
      heads.push_back(std::move(values));
    }
    layers.push_back({{"layer", shape.layers[i]}, {"heads", std::move(heads)}});
  }
  return {{"pieces", std::move(pieces)}, {"classes", std::move(classes)}, {"gates", std::move(layers)}};
}

}  // namespace satformer::analysis
