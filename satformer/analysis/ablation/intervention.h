#pragma once
// Replaces what a model multiplies its first values with, alpha [B, T, H_kv]: a SATFormer's gates, a ResFormer's
// lambda1 (the same for every token and head of a layer).
//
//   zero        0
//   scale       X alpha
//   mean        the head's mean over the calibration tokens; of a ResFormer the mean of lambda1 over its layers
//   token-mean  the head's mean over the calibration tokens of the same id; the head's mean where there were none
//   shuffle     alpha of another token: each layer, head and window has its own permutation of the tokens it holds
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "satformer/analysis/ablation/calibration.h"
#include "satformer/analysis/tokens/categories.h"
#include "satformer/analysis/tokens/row.h"
#include "satformer/nn/intervention.h"

namespace satformer::analysis {

enum class InterventionMode { zero, mean, token_mean, shuffle, scale };

// "zero", "mean", "token-mean", "shuffle", "scale".
std::string_view mode_name(InterventionMode mode);

struct InterventionRule {
  InterventionMode mode = InterventionMode::zero;
  double scale = 1.0;      // X
  std::uint64_t seed = 0;  // of the permutations; they depend on it, layer, head and window alone
};

// As the flag --mode has it: "zero", "scale=0.5".
std::string rule_text(const InterventionRule& rule);

// Which gates are replaced: those of one layer, head, group of token classes; absent: of all.
struct GateSelection {
  std::optional<std::int64_t> layer, head;
  std::optional<int> group;
};

class GateIntervention : public nn::Intervention {
 public:
  // `means` is needed by the modes mean and token-mean, `categories` by selections with a group.
  GateIntervention(InterventionRule rule, const GateMeans* means, const TokenCategories* categories);

  // The tokens of the batch that the model is to run over: ids [B, T] on the model's device and, of those that count,
  // the rows.
  void begin_batch(const at::Tensor& ids, std::span<const TokenRow> rows, std::int64_t first_window);
  void select(const GateSelection& selection);

  at::Tensor first_value_weights(std::int64_t layer, const at::Tensor& alpha) override;

 private:
  at::Tensor replaced(std::int64_t layer, const at::Tensor& alpha) const;
  at::Tensor permutations(std::int64_t layer, std::int64_t heads) const;
  bool selects(const TokenRow& row) const;

  InterventionRule rule_;
  const GateMeans* means_;
  const TokenCategories* categories_;
  GateSelection selection_;
  at::Tensor ids_;
  std::span<const TokenRow> rows_;
  std::int64_t first_window_ = 0;
  at::Tensor tokens_;  // bool [B, T, 1]: those that the selection names; undefined: all
};

}  // namespace satformer::analysis
