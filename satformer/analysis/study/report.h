#pragma once
// What `satformer gates` reports (docs/gates.md): the study of a checkpoint's model, and beside it that of the model
// before training and of the run's other checkpoints.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "satformer/analysis/study/model_study.h"

namespace satformer::analysis {

struct GatesReport {
  struct Checkpoint {
    std::string path, architecture;
    std::int64_t num_parameters = 0;
    nlohmann::json config;                     // as config.json has it
    std::optional<std::int64_t> step, tokens;  // not of a checkpoint without a trainer's state
  };
  struct Data {
    std::string name;
    std::int64_t tokens = 0, windows = 0, seq_length = 0;
    bool document_mask = false;
    std::string dtype;
  };
  struct Initialization : ModelStudy {
    std::uint64_t seed = 0;
    bool seed_known = false;
  };
  // A checkpoint of the run; step 0 is the model at initialisation.
  struct Point : ModelStudy {
    std::int64_t step = 0, tokens = 0;
  };

  std::string version;  // of the program
  Checkpoint checkpoint;
  Data data;
  ModelStudy model;
  std::optional<Initialization> initialization;
  std::vector<Point> dynamics;  // by step; empty: not asked for
  std::vector<std::string> findings;

  // The gates of the model before training; null: not known.
  const GateSummary* initial_gates() const;
};

// What a report keeps of a study for each checkpoint of a run.
GatesReport::Point point_of(const ModelStudy& study, std::int64_t step, std::int64_t tokens);

// How sparse, where, for which tokens: the sentences that open the page.
std::vector<std::string> findings_of(const GatesReport& report);

nlohmann::json to_json(const GatesReport& report);

}  // namespace satformer::analysis
