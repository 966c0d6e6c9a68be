#include <algorithm>
#include <cmath>
#include <numeric>

#include "satformer/analysis/ablation.h"
#include "satformer/analysis/json_number.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

json optional_json(const std::optional<std::int64_t>& value) { return value ? json(*value) : json(); }

// Of (ablated - intact) / targets, all three from the same blocks.
json change_json(const Ablation& ablation, const std::vector<double>& losses, const BlockBootstrap& bootstrap) {
  std::vector<double> differences(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) differences[i] = losses[i] - ablation.intact[i];
  std::vector<double> statistics = bootstrap.resample(differences);
  const std::vector<double> targets = bootstrap.resample(ablation.targets);
  for (std::size_t r = 0; r < statistics.size(); ++r) statistics[r] /= targets[r];
  const std::optional<Interval> interval = bootstrap.interval(std::move(statistics));
  return {{"value", json_number(sum(differences) / sum(ablation.targets))},
          {"low", interval ? json_number(interval->low) : json()},
          {"high", interval ? json_number(interval->high) : json()}};
}

}  // namespace

json ablation_json(const Ablation& ablation, const TokenCategories* categories, const BootstrapOptions& bootstrap) {
  const BlockBootstrap resampling(static_cast<std::int64_t>(ablation.targets.size()), bootstrap);
  const double targets = sum(ablation.targets), intact = sum(ablation.intact) / targets;
  std::vector<std::size_t> order(ablation.selections.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::size_t i) {  // what is no number at all is the largest change
    const double loss = sum(ablation.losses[i]);
    return std::isnan(loss) ? INFINITY : loss;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<std::size_t> ranks(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = i + 1;
  json rows = json::array();
  for (std::size_t i = 0; i < ablation.selections.size(); ++i) {
    const GateSelection& selection = ablation.selections[i];
    const double loss = sum(ablation.losses[i]) / targets;
    rows.push_back({{"layer", optional_json(selection.layer)},
                    {"head", optional_json(selection.head)},
                    {"category", selection.group && categories != nullptr
                                     ? json(categories->groups()[static_cast<std::size_t>(*selection.group)])
                                     : json()},
                    {"loss", json_number(loss)},
                    {"perplexity", json_number(std::exp(loss))},
                    {"change", change_json(ablation, ablation.losses[i], resampling)},
                    {"rank", ranks[i]}});
  }
  return {{"intact",
           {{"loss", json_number(intact)},
            {"perplexity", json_number(std::exp(intact))},
            {"tokens", static_cast<std::int64_t>(targets)}}},
          {"ablations", std::move(rows)}};
}

}  // namespace satformer::analysis
