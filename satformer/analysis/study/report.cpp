#include "satformer/analysis/study/report.h"

#include "satformer/analysis/access/findings.h"
#include "satformer/analysis/access/json.h"
#include "satformer/analysis/gates/findings.h"
#include "satformer/analysis/gates/json.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

template <typename Value>
json optional_json(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

json study_json(const ModelStudy& study) {
  return {{"gates", study.gates ? to_json(*study.gates) : json()},
          {"access", study.access ? to_json(*study.access) : json()}};
}

json initialization_json(const GatesReport::Initialization& initial) {
  json object = study_json(initial);
  object.update({{"seed", initial.seed}, {"seed_known", initial.seed_known}});
  return object;
}

json dynamics_json(const std::vector<GatesReport::Point>& points) {
  if (points.empty()) return nullptr;
  json list = json::array();
  for (const GatesReport::Point& point : points) {
    list.push_back(study_json(point));
    list.back().update({{"step", point.step}, {"tokens", point.tokens}});
  }
  return list;
}

json checkpoint_json(const GatesReport::Checkpoint& checkpoint) {
  return {{"path", checkpoint.path},
          {"architecture", checkpoint.architecture},
          {"num_parameters", checkpoint.num_parameters},
          {"config", checkpoint.config},
          {"step", optional_json(checkpoint.step)},
          {"tokens", optional_json(checkpoint.tokens)}};
}

json data_json(const GatesReport::Data& data) {
  return {{"name", data.name},
          {"tokens", data.tokens},
          {"windows", data.windows},
          {"seq_length", data.seq_length},
          {"document_mask", data.document_mask},
          {"dtype", data.dtype}};
}

}  // namespace

const GateSummary* GatesReport::initial_gates() const {
  return initialization && initialization->gates ? &*initialization->gates : nullptr;
}

GatesReport::Point point_of(const ModelStudy& study, std::int64_t step, std::int64_t tokens) {
  GatesReport::Point point{study, step, tokens};
  if (point.gates) point.gates = for_dynamics(std::move(*point.gates));
  return point;
}

std::vector<std::string> findings_of(const GatesReport& report) {
  if (report.model.gates) return gate_findings(*report.model.gates, report.initial_gates());
  return report.model.access ? access_findings(*report.model.access) : std::vector<std::string>();
}

json to_json(const GatesReport& report) {
  json object = study_json(report.model);
  object.update({{"schema", "satformer.gates/1"},
                 {"satformer", report.version},
                 {"checkpoint", checkpoint_json(report.checkpoint)},
                 {"data", data_json(report.data)},
                 {"initialization", report.initialization ? initialization_json(*report.initialization) : json()},
                 {"dynamics", dynamics_json(report.dynamics)},
                 {"findings", report.findings}});
  return object;
}

}  // namespace satformer::analysis
