#pragma once
// What `satformer ablate` reports (docs/ablation.md). Numbers are rounded (statistics/rounding.h).
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "satformer/analysis/ablation/sweep.h"
#include "satformer/analysis/statistics/bootstrap.h"

namespace satformer::analysis {

// One ablation: what it replaces (absent: not narrowed down), and the loss with it.
struct AblationRow {
  std::optional<std::int64_t> layer, head;
  std::optional<std::string> category;
  double loss = 0.0, perplexity = 0.0;
  Estimate change;        // the loss minus the intact model's, from the same blocks of windows; in nats
  std::int64_t rank = 0;  // 1: the largest change
};

struct AblationReport {
  struct Data {
    std::string name, split;
    std::int64_t tokens = 0, windows = 0, blocks = 0, seq_length = 0;
    bool document_mask = false;
  };
  struct Calibration {
    std::string name, split;
    std::int64_t tokens = 0;
  };
  struct Intact {
    double loss = 0.0, perplexity = 0.0;
    std::int64_t tokens = 0;
  };

  std::string version;  // of the program
  std::string checkpoint, architecture;
  InterventionRule rule;
  AblationScope scope = AblationScope::all;
  Data data;
  std::optional<Calibration> calibration;  // of the modes mean and token-mean
  Intact intact;
  std::vector<AblationRow> ablations;  // in the sweep's order
  std::string finding;
  bool reuse = true;
  double seconds = 0.0;  // of the sweep
  BootstrapOptions bootstrap;

  // The ablations by rank.
  std::vector<AblationRow> ranked() const;
};

// Fills `intact`, `ablations` and `bootstrap`. `categories` names the groups of selections that have one.
void add_numbers(AblationReport& report, const Ablation& ablation, const TokenCategories* categories,
                 const BootstrapOptions& bootstrap);

// What an ablation replaces, for a reader: "layer 3 head 1", "functional tokens", "all gates".
std::string ablation_name(const AblationRow& ablation);

// What breaks: the sentence that ends the command's output.
std::string ablation_finding(const AblationReport& report);

nlohmann::json to_json(const AblationReport& report);

}  // namespace satformer::analysis
