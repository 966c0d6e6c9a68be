#include "satformer/analysis/access/summary.h"

namespace satformer::analysis {

std::optional<AccessSummary> summarize_access(const DepthAccess& access) {
  if (access.empty()) return std::nullopt;
  AccessSummary summary;
  for (const StaticAccess& layer : access.layers) {
    summary.layers.push_back({.layer = layer.layer,
                              .lambda1 = rounded(layer.lambda1),
                              .lambda2 = rounded(layer.lambda2),
                              .contribution = spreads_of(layer.contribution),
                              .first_share = spreads_of(layer.first_share)});
  }
  for (const DepthReader& reader : access.readers) {
    summary.readers.push_back({.name = reader.name,
                               .layer = reader.layer,
                               .sources = reader.sources,
                               .weights = spreads_of(reader.weights),
                               .early_share = rounded(reader.early_share.mean()),
                               .lookback = rounded(reader.lookback.mean())});
  }
  for (const ConnectionMatrices& matrices : access.matrices) {
    summary.matrices.push_back({matrices.name, spreads_of(matrices.alpha), spreads_of(matrices.beta)});
  }
  return summary;
}

}  // namespace satformer::analysis
