#include "satformer/analysis/gates/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace satformer::analysis {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

std::string how_sparse(const SeriesSummary& model, const GateSummary* initial) {
  std::string text = fmt::format("{} of the gates are exactly zero", percent(model.zero_fraction));
  if (initial != nullptr) text += fmt::format(" ({} before training)", percent(initial->model.zero_fraction));
  return text +
         fmt::format("; the mean gate is {:.3g}, {:.3g} while open, and adds {:.3g} times the value's own length.",
                     model.mean, model.mean_while_open, model.contribution.mean);
}

// The one with the largest mean magnitude.
template <typename Row>
const Row& strongest(const std::vector<Row>& rows) {
  return *std::max_element(rows.begin(), rows.end(),
                           [](const Row& a, const Row& b) { return a.mean_magnitude < b.mean_magnitude; });
}

std::string where(const GateSummary& gates) {
  const auto& layer = strongest(gates.layers);
  const auto& head = strongest(gates.heads);
  const Concentration::Top& top = gates.concentration.top[1];
  return fmt::format(
      "The gates are largest in layer {} (mean {:.3g}) and in layer {} head {} (mean {:.3g}); the top {} of "
      "{} heads have {} of the sum (even: {}), Gini {:.2f}.",
      layer.layer, layer.mean, head.layer, head.head, head.mean, top.heads, gates.concentration.heads,
      percent(top.share), percent(top.even_share), gates.concentration.gini);
}

std::string which_tokens(const CategorySummary& categories) {
  const Estimate& contrast = categories.model.contrast.mean;
  const auto& [first, second] = categories.contrast;
  const auto mean_of = [&](const std::string& group) { return categories.model.groups.at(group).mean.value; };
  for (const std::string& group : {first, second}) {
    if (!std::isfinite(mean_of(group))) return fmt::format("The data hold no {} tokens to compare.", group);
  }
  std::string text = fmt::format("The mean gate of {} tokens is {:.3g}, of {} tokens {:.3g}", first, mean_of(first),
                                 second, mean_of(second));
  if (!contrast.interval) return text + "; too few blocks of text for an interval of the difference.";
  const auto [low, high] = *contrast.interval;
  return text + fmt::format(": a difference of {:+.3g} [{:+.3g}, {:+.3g}], {}.", contrast.value, low, high,
                            low > 0    ? first + " tokens open the gates more"
                            : high < 0 ? second + " tokens open the gates more"
                                       : "which the data do not tell from zero");
}

}  // namespace

std::vector<std::string> gate_findings(const GateSummary& gates, const GateSummary* initial) {
  std::vector<std::string> sentences{how_sparse(gates.model, initial), where(gates)};
  if (gates.categories) sentences.push_back(which_tokens(*gates.categories));
  return sentences;
}

}  // namespace satformer::analysis
