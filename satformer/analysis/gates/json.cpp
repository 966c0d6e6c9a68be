#include "satformer/analysis/gates/json.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "satformer/analysis/output/json.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

json part_json(const SeriesSummary& series) {
  return {{"values", series.values},
          {"mean", number_json(series.mean)},
          {"std", number_json(series.deviation)},
          {"mean_magnitude", number_json(series.mean_magnitude)},
          {"min", number_json(series.min)},
          {"max", number_json(series.max)},
          {"zero_share", number_json(series.zero_fraction)},
          {"below", numbers_json(series.below)},
          {"open_share", number_json(series.open_share)},
          {"mean_while_open", number_json(series.mean_while_open)},
          {"quantiles", numbers_json(series.quantiles)},
          {"contribution", to_json(series.contribution)},
          {"first_share", to_json(series.first_share)}};
}

json part_json(const LayerSummary& layer) {
  json object = part_json(static_cast<const SeriesSummary&>(layer));
  object.update({{"gini", number_json(layer.gini)}, {"top_head_share", number_json(layer.top_head_share)}});
  return object;
}

json part_json(const PositionProfile& profile) {
  return {{"mean", numbers_json(profile.means)}, {"open_share", numbers_json(profile.open_shares)}};
}

json part_json(const BinCounts& bins) { return {{"zeros", bins.zeros}, {"counts", bins.counts}}; }

json part_json(const CategoryEstimate& estimate) {
  return {{"mean", to_json(estimate.mean)}, {"open_share", to_json(estimate.open_share)}};
}

json part_json(const std::map<std::string, CategoryEstimate>& estimates) {
  json object = json::object();
  for (const auto& [name, estimate] : estimates) object[name] = part_json(estimate);
  return object;
}

json part_json(const CategoryEstimates& estimates) {
  return {{"classes", part_json(estimates.classes)},
          {"groups", part_json(estimates.groups)},
          {"all", part_json(estimates.all)},
          {"contrast", part_json(estimates.contrast)}};
}

json part_json(const std::vector<ListedToken>& tokens) {
  json list = json::array();
  for (const ListedToken& token : tokens) {
    list.push_back(
        {{"id", token.id}, {"piece", token.piece}, {"mean", number_json(token.mean)}, {"count", token.count}});
  }
  return list;
}

json part_json(const ListedTokens& tokens) {
  return {{"top", part_json(tokens.top)}, {"bottom", part_json(tokens.bottom)}};
}

json part_json(const LayerText& layer) {
  json heads = json::array();
  for (const std::vector<double>& values : layer.heads) heads.push_back(numbers_json(values));
  return {{"heads", std::move(heads)}};
}

template <typename Numbers>
json list_json(const std::vector<OfLayer<Numbers>>& layers) {
  json list = json::array();
  for (const OfLayer<Numbers>& layer : layers) {
    list.push_back(part_json(static_cast<const Numbers&>(layer)));
    list.back()["layer"] = layer.layer;
  }
  return list;
}

template <typename Numbers>
json list_json(const std::vector<OfHead<Numbers>>& heads) {
  json list = json::array();
  for (const OfHead<Numbers>& head : heads) {
    list.push_back(part_json(static_cast<const Numbers&>(head)));
    list.back().update({{"layer", head.layer}, {"head", head.head}});
  }
  return list;
}

json part_json(const Concentration& concentration) {
  json top = json::array();
  for (const Concentration::Top& part : concentration.top) {
    top.push_back(
        {{"heads", part.heads}, {"share", number_json(part.share)}, {"even_share", number_json(part.even_share)}});
  }
  return {{"heads", concentration.heads}, {"gini", number_json(concentration.gini)}, {"top", std::move(top)}};
}

json part_json(const PositionSummary& positions) {
  return {{"from", positions.from},
          {"tokens", positions.tokens},
          {"layers", list_json(positions.layers)},
          {"heads", list_json(positions.heads)}};
}

json part_json(const CategorySummary& categories) {
  json classes = json::array();
  for (const CountedClass& one : categories.classes) {
    classes.push_back({{"name", one.name}, {"group", one.group}, {"tokens", one.tokens}});
  }
  json object = {{"name", categories.name},
                 {"contrast", {categories.contrast.first, categories.contrast.second}},
                 {"bootstrap",
                  {{"blocks", categories.blocks},
                   {"resamples", categories.bootstrap.resamples},
                   {"confidence", categories.bootstrap.confidence},
                   {"seed", categories.bootstrap.seed}}},
                 {"classes", std::move(classes)},
                 {"model", part_json(categories.model)},
                 {"layers", list_json(categories.layers)}};
  if (categories.sources) object["sources"] = *categories.sources;
  if (!categories.heads.empty()) object["heads"] = list_json(categories.heads);
  return object;
}

json part_json(const HistogramSummary& histogram) {
  return {{"edges", numbers_json(histogram.edges)},
          {"layers", list_json(histogram.layers)},
          {"heads", list_json(histogram.heads)}};
}

}  // namespace

json to_json(const GateSummary& gates) {
  json object = {{"function", gates.function},
                 {"thresholds", gates.thresholds},
                 {"open_above", gates.open_above},
                 {"quantiles", gates.quantiles},
                 {"model", part_json(gates.model)},
                 {"layers", list_json(gates.layers)},
                 {"heads", list_json(gates.heads)},
                 {"concentration", part_json(gates.concentration)},
                 {"categories", gates.categories ? part_json(*gates.categories) : json()}};
  if (gates.positions) object["positions"] = part_json(*gates.positions);
  if (!gates.details) return object;
  const auto& [histogram, tokens, text] = *gates.details;
  object["histogram"] = part_json(histogram);
  object["tokens"] = {{"min_count", tokens.min_count}, {"heads", list_json(tokens.heads)}};
  object["text"] = {{"pieces", text.pieces}, {"classes", text.classes}, {"gates", list_json(text.gates)}};
  return object;
}

}  // namespace satformer::analysis
