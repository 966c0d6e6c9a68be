#include "satformer/analysis/access/table.h"

#include "satformer/analysis/output/csv.h"

namespace satformer::analysis {

std::string access_table(const AccessSummary& access) {
  CsvTable table({"reader", "layer", "kv_head", "source", "weight_mean", "weight_std", "early_share", "lookback",
                  "lambda1", "lambda2", "contribution_mean", "first_share_mean"});
  for (const StaticSummary& layer : access.layers) {
    for (std::size_t head = 0; head < layer.contribution.means.size(); ++head) {
      table.add({"", csv_cell(layer.layer), std::to_string(head), "", "", "", "", "", csv_cell(layer.lambda1),
                 csv_cell(layer.lambda2), csv_cell(layer.contribution.means[head]),
                 csv_cell(layer.first_share.means[head])});
    }
  }
  for (const ReaderSummary& reader : access.readers) {
    for (std::size_t i = 0; i < reader.sources.size(); ++i) {
      table.add({reader.name, csv_cell(reader.layer), "", csv_cell(reader.sources[i]),
                 csv_cell(reader.weights.means[i]), csv_cell(reader.weights.deviations[i]),
                 csv_cell(reader.early_share), csv_cell(reader.lookback), "", "", "", ""});
    }
  }
  return table.take();
}

}  // namespace satformer::analysis
