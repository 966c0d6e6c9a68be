#include "satformer/analysis/access_json.h"

#include "satformer/analysis/json_number.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

json list_of(const std::vector<Moments>& moments, double (Moments::*member)() const) {
  json list = json::array();
  for (const Moments& one : moments) list.push_back(json_number((one.*member)()));
  return list;
}

json means_and_deviations(const std::vector<Moments>& moments) {
  return {{"mean", list_of(moments, &Moments::mean)}, {"std", list_of(moments, &Moments::standard_deviation)}};
}

json static_json(const StaticAccess& access) {
  return {{"layer", access.layer},
          {"lambda1", json_number(access.lambda1)},
          {"lambda2", json_number(access.lambda2)},
          {"contribution", means_and_deviations(access.contribution)},
          {"first_share", means_and_deviations(access.first_share)}};
}

json reader_json(const DepthReader& reader) {
  return {{"reader", reader.name},
          {"layer", reader.layer},
          {"sources", reader.sources},
          {"weights", means_and_deviations(reader.weights)},
          {"early_share", json_number(reader.early_share.mean())},
          {"lookback", json_number(reader.lookback.mean())}};
}

}  // namespace

json access_json(const DepthAccess& access) {
  if (access.empty()) return nullptr;
  json result = {{"layers", json::array()}, {"readers", json::array()}, {"matrices", json::array()}};
  for (const StaticAccess& layer : access.layers) result["layers"].push_back(static_json(layer));
  for (const DepthReader& reader : access.readers) result["readers"].push_back(reader_json(reader));
  for (const ConnectionMatrices& matrices : access.matrices) {
    result["matrices"].push_back({{"module", matrices.name},
                                  {"alpha", means_and_deviations(matrices.alpha)},
                                  {"beta", means_and_deviations(matrices.beta)}});
  }
  return result;
}

}  // namespace satformer::analysis
