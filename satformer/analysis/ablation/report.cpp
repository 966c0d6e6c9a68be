#include "satformer/analysis/ablation/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "satformer/analysis/output/json.h"
#include "satformer/analysis/statistics/rounding.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Of (ablated - intact) / targets, all three from the same blocks.
Estimate change_of(const Ablation& ablation, const std::vector<double>& losses, const BlockBootstrap& bootstrap) {
  std::vector<double> differences(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) differences[i] = losses[i] - ablation.intact[i];
  std::vector<double> statistics = bootstrap.resample(differences);
  const std::vector<double> targets = bootstrap.resample(ablation.targets);
  for (std::size_t r = 0; r < statistics.size(); ++r) statistics[r] /= targets[r];
  return rounded(Estimate{sum(differences) / sum(ablation.targets), bootstrap.interval(std::move(statistics))});
}

// From 1, by loss.
std::vector<std::int64_t> ranks_of(const Ablation& ablation) {
  std::vector<std::size_t> order(ablation.selections.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::size_t i) {  // what is no number at all is the largest change
    const double loss = sum(ablation.losses[i]);
    return std::isnan(loss) ? INFINITY : loss;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<std::int64_t> ranks(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<std::int64_t>(i + 1);
  return ranks;
}

template <typename Value>
json optional_json(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

json row_json(const AblationRow& row) {
  return {{"layer", optional_json(row.layer)},
          {"head", optional_json(row.head)},
          {"category", optional_json(row.category)},
          {"loss", number_json(row.loss)},
          {"perplexity", number_json(row.perplexity)},
          {"change", to_json(row.change)},
          {"rank", row.rank}};
}

json data_json(const AblationReport::Data& data) {
  return {{"name", data.name},
          {"split", data.split},
          {"tokens", data.tokens},
          {"windows", data.windows},
          {"blocks", data.blocks},
          {"seq_length", data.seq_length},
          {"document_mask", data.document_mask}};
}

}  // namespace

std::vector<AblationRow> AblationReport::ranked() const {
  std::vector<AblationRow> rows = ablations;
  std::sort(rows.begin(), rows.end(), [](const AblationRow& a, const AblationRow& b) { return a.rank < b.rank; });
  return rows;
}

void add_numbers(AblationReport& report, const Ablation& ablation, const TokenCategories* categories,
                 const BootstrapOptions& bootstrap) {
  const BlockBootstrap resampling(static_cast<std::int64_t>(ablation.targets.size()), bootstrap);
  const double targets = sum(ablation.targets), intact = sum(ablation.intact) / targets;
  report.bootstrap = bootstrap;
  report.intact = {rounded(intact), rounded(std::exp(intact)), static_cast<std::int64_t>(targets)};
  const std::vector<std::int64_t> ranks = ranks_of(ablation);
  for (std::size_t i = 0; i < ablation.selections.size(); ++i) {
    const GateSelection& selection = ablation.selections[i];
    const double loss = sum(ablation.losses[i]) / targets;
    AblationRow& row = report.ablations.emplace_back();
    row.layer = selection.layer;
    row.head = selection.head;
    if (selection.group && categories != nullptr) {
      row.category = categories->groups()[static_cast<std::size_t>(*selection.group)];
    }
    row.loss = rounded(loss);
    row.perplexity = rounded(std::exp(loss));
    row.change = change_of(ablation, ablation.losses[i], resampling);
    row.rank = ranks[i];
  }
}

std::string ablation_name(const AblationRow& ablation) {
  if (ablation.category) return *ablation.category + " tokens";
  if (!ablation.layer) return "all gates";
  if (!ablation.head) return fmt::format("layer {}", *ablation.layer);
  return fmt::format("layer {} head {}", *ablation.layer, *ablation.head);
}

std::string ablation_finding(const AblationReport& report) {
  const AblationRow most = report.ranked().front();
  const std::string mode = rule_text(report.rule), name = ablation_name(most);
  if (!std::isfinite(most.change.value)) {
    return fmt::format("Replaced by {}, {} give a loss that is not finite.", mode, name);
  }
  std::string text = fmt::format("Replaced by {}, {} the loss by {:+.4f} nats", mode,
                                 name + (most.layer ? " changes" : " change"), most.change.value);
  if (!most.change.interval) return text + "; too few blocks of text for an interval.";
  const auto [low, high] = *most.change.interval;
  text += fmt::format(" [{:+.4f}, {:+.4f}]", low, high);
  if (report.ablations.size() > 1) text += fmt::format(", most of {}", report.ablations.size());
  return text + (low > 0    ? ": the model reads what they carry."
                 : high < 0 ? ": the model is better without."
                            : ", which the data do not tell from zero.");
}

json to_json(const AblationReport& report) {
  json rows = json::array(), calibration;
  for (const AblationRow& row : report.ablations) rows.push_back(row_json(row));
  if (report.calibration) {
    const auto& [name, split, tokens] = *report.calibration;
    calibration = {{"name", name}, {"split", split}, {"tokens", tokens}};
  }
  return {{"schema", "satformer.ablation/1"},
          {"satformer", report.version},
          {"checkpoint", report.checkpoint},
          {"architecture", report.architecture},
          {"mode", rule_text(report.rule)},
          {"scope", scope_name(report.scope)},
          {"data", data_json(report.data)},
          {"calibration", std::move(calibration)},
          {"intact",
           {{"loss", number_json(report.intact.loss)},
            {"perplexity", number_json(report.intact.perplexity)},
            {"tokens", report.intact.tokens}}},
          {"ablations", std::move(rows)},
          {"finding", report.finding},
          {"reuse", report.reuse},
          {"seconds", report.seconds},
          {"bootstrap",
           {{"confidence", report.bootstrap.confidence},
            {"resamples", report.bootstrap.resamples},
            {"seed", report.bootstrap.seed}}}};
}

}  // namespace satformer::analysis
