#include "satformer/analysis/access/json.h"

#include "satformer/analysis/output/json.h"

namespace satformer::analysis {

using nlohmann::json;

json to_json(const AccessSummary& access) {
  json object = {{"layers", json::array()}, {"readers", json::array()}, {"matrices", json::array()}};
  for (const StaticSummary& layer : access.layers) {
    object["layers"].push_back({{"layer", layer.layer},
                                {"lambda1", number_json(layer.lambda1)},
                                {"lambda2", number_json(layer.lambda2)},
                                {"contribution", to_json(layer.contribution)},
                                {"first_share", to_json(layer.first_share)}});
  }
  for (const ReaderSummary& reader : access.readers) {
    object["readers"].push_back({{"reader", reader.name},
                                 {"layer", reader.layer},
                                 {"sources", reader.sources},
                                 {"weights", to_json(reader.weights)},
                                 {"early_share", number_json(reader.early_share)},
                                 {"lookback", number_json(reader.lookback)}});
  }
  for (const MatricesSummary& matrices : access.matrices) {
    object["matrices"].push_back(
        {{"module", matrices.module}, {"alpha", to_json(matrices.alpha)}, {"beta", to_json(matrices.beta)}});
  }
  return object;
}

}  // namespace satformer::analysis
