#include "satformer/analysis/access/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace satformer::analysis {
namespace {

std::string static_sentence(const std::vector<StaticSummary>& layers) {
  const auto most = std::max_element(layers.begin(), layers.end(), [](const StaticSummary& a, const StaticSummary& b) {
    return std::abs(a.lambda1) < std::abs(b.lambda1);
  });
  return fmt::format("The first values' weight is largest in layer {}: lambda1 {:.3g} beside lambda2 {:.3g}.",
                     most->layer, most->lambda1, most->lambda2);
}

std::string readers_sentence(const std::vector<ReaderSummary>& readers) {
  double sum = 0.0, count = 0.0;
  const ReaderSummary* most = nullptr;
  for (const ReaderSummary& reader : readers) {
    if (!std::isfinite(reader.early_share)) continue;
    sum += reader.early_share;
    count += 1.0;
    if (most == nullptr || reader.early_share > most->early_share) most = &reader;
  }
  if (most == nullptr) return "All weights are zero.";
  return fmt::format(
      "On average {:.1f} % of the weights' magnitude lies on sources before the newest; most of all ({:.1f} %) "
      "for {}.",
      100.0 * sum / count, 100.0 * most->early_share, most->name);
}

}  // namespace

std::vector<std::string> access_findings(const AccessSummary& access) {
  std::vector<std::string> sentences;
  if (!access.layers.empty()) sentences.push_back(static_sentence(access.layers));
  if (!access.readers.empty()) sentences.push_back(readers_sentence(access.readers));
  return sentences;
}

}  // namespace satformer::analysis
