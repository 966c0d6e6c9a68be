// The sentences of gate_report.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "satformer/analysis/gate_plots.h"
#include "satformer/analysis/gate_report.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

std::string percent(const json& share) { return fmt::format("{:.1f} %", 100.0 * plot_number(share)); }

std::string how_sparse(const json& document) {
  const json& model = document["gates"]["model"];
  std::string text = fmt::format("{} of the gates are exactly zero", percent(model["zero_fraction"]));
  const json& initial = document["initialization"];
  if (!initial.is_null() && !initial["gates"].is_null()) {
    text += fmt::format(" ({} before training)", percent(initial["gates"]["model"]["zero_fraction"]));
  }
  return text +
         fmt::format("; the mean gate is {:.3g}, {:.3g} while open, and adds {:.3g} times the value's own length.",
                     plot_number(model["mean"]), plot_number(model["mean_while_open"]),
                     plot_number(model["contribution"]["mean"]));
}

// The one with the largest mean magnitude.
const json& strongest(const json& rows) {
  return *std::max_element(rows.begin(), rows.end(), [](const json& a, const json& b) {
    return plot_number(a["mean_magnitude"]) < plot_number(b["mean_magnitude"]);
  });
}

std::string where(const json& gates) {
  const json& layer = strongest(gates["layers"]);
  const json& head = strongest(gates["heads"]);
  const json& top = gates["concentration"]["top"][1];
  return fmt::format(
      "The gates are largest in layer {} (mean {:.3g}) and in layer {} head {} (mean {:.3g}); the top {} of "
      "{} heads have {} of the sum (even: {}), Gini {:.2f}.",
      layer["layer"].dump(), plot_number(layer["mean"]), head["layer"].dump(), head["head"].dump(),
      plot_number(head["mean"]), top["heads"].dump(), gates["concentration"]["heads"].dump(), percent(top["share"]),
      percent(top["even_share"]), plot_number(gates["concentration"]["gini"]));
}

std::string which_tokens(const json& categories) {
  const json& contrast = categories["model"]["contrast"]["mean"];
  const auto first = categories["contrast"][0].get<std::string>(),
             second = categories["contrast"][1].get<std::string>();
  const auto mean_of = [&](const std::string& group) {
    return plot_number(categories["model"]["groups"][group]["mean"]["value"]);
  };
  for (const std::string& group : {first, second}) {
    if (!std::isfinite(mean_of(group))) return fmt::format("The data hold no {} tokens to compare.", group);
  }
  std::string text = fmt::format("The mean gate of {} tokens is {:.3g}, of {} tokens {:.3g}", first, mean_of(first),
                                 second, mean_of(second));
  if (contrast["low"].is_null()) return text + "; too few blocks of text for an interval of the difference.";
  const double low = plot_number(contrast["low"]), high = plot_number(contrast["high"]);
  return text + fmt::format(": a difference of {:+.3g} [{:+.3g}, {:+.3g}], {}.", plot_number(contrast["value"]), low,
                            high,
                            low > 0    ? first + " tokens open the gates more"
                            : high < 0 ? second + " tokens open the gates more"
                                       : "which the data do not tell from zero");
}

std::string static_sentence(const json& layers) {
  const auto most = std::max_element(layers.begin(), layers.end(), [](const json& a, const json& b) {
    return std::abs(plot_number(a["lambda1"])) < std::abs(plot_number(b["lambda1"]));
  });
  return fmt::format("The first values' weight is largest in layer {}: lambda1 {:.3g} beside lambda2 {:.3g}.",
                     (*most)["layer"].dump(), plot_number((*most)["lambda1"]), plot_number((*most)["lambda2"]));
}

std::string readers_sentence(const json& readers) {
  double sum = 0.0, count = 0.0;
  const json* most = nullptr;
  for (const json& reader : readers) {
    const double share = plot_number(reader["early_share"]);
    if (!std::isfinite(share)) continue;
    sum += share;
    count += 1.0;
    if (most == nullptr || share > plot_number((*most)["early_share"])) most = &reader;
  }
  if (most == nullptr) return "All weights are zero.";
  return fmt::format(
      "On average {:.1f} % of the weights' magnitude lies on sources before the newest; most of all ({:.1f} %) "
      "for {}.",
      100.0 * sum / count, 100.0 * plot_number((*most)["early_share"]), (*most)["reader"].get<std::string>());
}

}  // namespace

std::vector<std::string> findings(const json& document) {
  std::vector<std::string> sentences;
  const json& gates = document["gates"];
  if (!gates.is_null()) {
    sentences = {how_sparse(document), where(gates)};
    if (!gates["categories"].is_null()) sentences.push_back(which_tokens(gates["categories"]));
  }
  const json& access = document["access"];
  if (access.is_null()) return sentences;
  if (!access["layers"].empty()) sentences.push_back(static_sentence(access["layers"]));
  if (!access["readers"].empty()) sentences.push_back(readers_sentence(access["readers"]));
  return sentences;
}

}  // namespace satformer::analysis
