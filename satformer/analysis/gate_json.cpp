#include "satformer/analysis/gate_json.h"

#include <algorithm>
#include <cmath>

#include "satformer/analysis/json_number.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

json moments_json(const Moments& moments) {
  return {{"mean", json_number(moments.mean())}, {"std", json_number(moments.standard_deviation())}};
}

json numbers_json(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(json_number(value));
  return list;
}

void add_series(json& object, const GateSeries& series, const std::vector<double>& quantiles) {
  object["values"] = series.count();
  object["mean"] = json_number(series.mean());
  object["std"] = json_number(series.standard_deviation());
  object["mean_magnitude"] = json_number(series.mean_magnitude());
  object["min"] = json_number(series.histogram().min());
  object["max"] = json_number(series.histogram().max());
  object["zero_fraction"] = json_number(series.zero_fraction());
  object["below"] = numbers_json(series.below_shares());
  object["open_share"] = json_number(series.open_share());
  object["mean_while_open"] = json_number(series.mean_while_open());
  object["quantiles"] = json::array();
  for (const double q : quantiles) object["quantiles"].push_back(json_number(series.quantile(q)));
  object["contribution"] = moments_json(series.contribution());
  object["first_share"] = moments_json(series.first_share());
}

std::vector<double> magnitudes(const GateCollector& collector, std::int64_t first_cell, std::int64_t cells) {
  std::vector<double> values;
  for (std::int64_t cell = first_cell; cell < first_cell + cells; ++cell) {
    values.push_back(collector.head(cell).mean_magnitude());
  }
  return values;
}

// Over all heads of the model; the shares of an even spread stand beside.
json concentration_json(const GateCollector& collector) {
  const std::int64_t cells = collector.shape().cells();
  const std::vector<double> values = magnitudes(collector, 0, cells);
  json object = {{"heads", cells}, {"gini", json_number(gini(values))}, {"top", json::array()}};
  for (const double part : {0.05, 0.1, 0.25, 0.5}) {
    const auto count = static_cast<std::int64_t>(std::ceil(part * static_cast<double>(cells)));
    object["top"].push_back({{"heads", count},
                             {"share", json_number(top_share(values, count))},
                             {"even_share", json_number(static_cast<double>(count) / static_cast<double>(cells))}});
  }
  return object;
}

json layers_json(const GateCollector& collector, const std::vector<double>& quantiles) {
  const GateShape& shape = collector.shape();
  json layers = json::array();
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    json& layer = layers.emplace_back(json{{"layer", shape.layers[i]}});
    add_series(layer, collector.layer(index), quantiles);
    const std::vector<double> values = magnitudes(collector, index * shape.heads, shape.heads);
    layer["gini"] = json_number(gini(values));
    layer["top_head_share"] = json_number(top_share(values, 1));
  }
  return layers;
}

json heads_json(const GateCollector& collector, const std::vector<double>& quantiles) {
  const GateShape& shape = collector.shape();
  json heads = json::array();
  for (std::int64_t cell = 0; cell < shape.cells(); ++cell) {
    const std::int64_t layer = shape.layers[static_cast<std::size_t>(cell / shape.heads)];
    json& head = heads.emplace_back(json{{"layer", layer}, {"head", cell % shape.heads}});
    add_series(head, collector.head(cell), quantiles);
  }
  return heads;
}

// mean and open_share by bucket, of cells together; null for buckets without tokens.
json profile_json(const GateCollector& collector, std::int64_t first_cell, std::int64_t cells) {
  json mean = json::array(), open = json::array();
  for (std::int64_t bucket = 0; bucket < collector.shape().position_buckets; ++bucket) {
    GateCollector::Sums sums;
    for (std::int64_t cell = first_cell; cell < first_cell + cells; ++cell) {
      sums.alpha += collector.bucket_sums(cell, bucket).alpha;
      sums.open += collector.bucket_sums(cell, bucket).open;
    }
    const auto count = static_cast<double>(collector.bucket_tokens(bucket) * cells);
    mean.push_back(json_number(sums.alpha / count));
    open.push_back(json_number(sums.open / count));
  }
  return {{"mean", mean}, {"open_share", open}};
}

}  // namespace

json histogram_json(const GateCollector& collector, std::int64_t bins) {
  const GateShape& shape = collector.shape();
  const GateSeries model = collector.model();
  // All but the last half per mille on each side, so that a few large gates do not squeeze the rest.
  double low = std::min(0.0, model.quantile(0.0005)), high = std::max(0.0, model.quantile(0.9995));
  if (low == high) high = 1.0;
  const std::vector<double> edges = display_edges(low, high, bins);
  const auto counted = [&](const GateSeries& series) {
    const std::vector<std::int64_t> counts = series.histogram().counts_between(edges);
    return json{{"zeros", series.histogram().zeros()}, {"counts", counts}};
  };
  json result = {{"edges", numbers_json(edges)}, {"layers", json::array()}, {"heads", json::array()}};
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    json& layer = result["layers"].emplace_back(counted(collector.layer(static_cast<std::int64_t>(i))));
    layer["layer"] = shape.layers[i];
  }
  for (std::int64_t cell = 0; cell < shape.cells(); ++cell) {
    json& head = result["heads"].emplace_back(counted(collector.head(cell)));
    head["layer"] = shape.layers[static_cast<std::size_t>(cell / shape.heads)];
    head["head"] = cell % shape.heads;
  }
  return result;
}

json positions_json(const GateCollector& collector) {
  const GateShape& shape = collector.shape();
  json from = json::array(), tokens = json::array(), layers = json::array(), heads = json::array();
  for (std::int64_t bucket = 0; bucket < shape.position_buckets; ++bucket) {
    from.push_back(bucket_begin(bucket));
    tokens.push_back(collector.bucket_tokens(bucket));
  }
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    json& layer = layers.emplace_back(profile_json(collector, static_cast<std::int64_t>(i) * shape.heads, shape.heads));
    layer["layer"] = shape.layers[i];
  }
  for (std::int64_t cell = 0; cell < shape.cells(); ++cell) {
    json& head = heads.emplace_back(profile_json(collector, cell, 1));
    head["layer"] = shape.layers[static_cast<std::size_t>(cell / shape.heads)];
    head["head"] = cell % shape.heads;
  }
  return {{"from", from}, {"tokens", tokens}, {"layers", layers}, {"heads", heads}};
}

json gate_numbers(const GateCollector& collector, const TokenClassifier* classifier, const GateJsonOptions& options) {
  json model = json::object();
  add_series(model, collector.model(), options.quantiles);
  return {{"function", options.gate_function},
          {"thresholds", collector.settings().thresholds},
          {"open_above", collector.settings().open_above},
          {"quantiles", options.quantiles},
          {"model", std::move(model)},
          {"layers", layers_json(collector, options.quantiles)},
          {"heads", heads_json(collector, options.quantiles)},
          {"concentration", concentration_json(collector)},
          {"positions", positions_json(collector)},
          {"categories",
           classifier == nullptr ? json() : categories_json(collector, classifier->categories(), options.bootstrap)}};
}

json gate_details(const GateCollector& collector, const TokenClassifier* classifier, const GateJsonOptions& options) {
  return {{"histogram", histogram_json(collector, options.histogram_bins)},
          {"tokens", listed_tokens_json(collector, classifier, options)},
          {"text", text_json(collector, classifier)}};
}

}  // namespace satformer::analysis
