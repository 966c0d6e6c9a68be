#include "satformer/analysis/ablation/intervention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <fmt/format.h>

#include <random>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/runtime/device.h"

namespace satformer::analysis {

std::string_view mode_name(InterventionMode mode) {
  switch (mode) {
    case InterventionMode::zero:
      return "zero";
    case InterventionMode::mean:
      return "mean";
    case InterventionMode::token_mean:
      return "token-mean";
    case InterventionMode::shuffle:
      return "shuffle";
    default:
      return "scale";
  }
}

std::string rule_text(const InterventionRule& rule) {
  const std::string name(mode_name(rule.mode));
  return rule.mode == InterventionMode::scale ? fmt::format("{}={}", name, rule.scale) : name;
}

GateIntervention::GateIntervention(InterventionRule rule, const GateMeans* means, const TokenCategories* categories)
    : rule_(rule), means_(means), categories_(categories) {
  const bool by_token = rule.mode == InterventionMode::token_mean;
  if (rule.mode == InterventionMode::mean || by_token) {
    require(means != nullptr && (!by_token || means->tokens.defined()), "gate intervention: {} needs means",
            mode_name(rule.mode));
  }
}

void GateIntervention::begin_batch(const at::Tensor& ids, std::span<const TokenRow> rows, std::int64_t first_window) {
  ids_ = ids;
  rows_ = rows;
  first_window_ = first_window;
  select(selection_);
}

bool GateIntervention::selects(const TokenRow& row) const {
  return !selection_.group || categories_->group_of(static_cast<int>(row.token_class)) == *selection_.group;
}

void GateIntervention::select(const GateSelection& selection) {
  selection_ = selection;
  tokens_ = at::Tensor();
  if (!selection.group || !ids_.defined()) return;
  require(categories_ != nullptr, "gate intervention: a group of tokens needs token classes");
  at::Tensor chosen = at::zeros({ids_.numel()}, at::kBool);
  bool* flags = chosen.data_ptr<bool>();
  for (const TokenRow& row : rows_) flags[row.row] = selects(row);
  tokens_ = to_device(chosen.view(ids_.sizes()).unsqueeze(-1), ids_.device());
}

at::Tensor GateIntervention::first_value_weights(std::int64_t layer, const at::Tensor& alpha) {
  if (selection_.layer && *selection_.layer != layer) return {};
  at::Tensor result = replaced(layer, alpha);
  if (tokens_.defined()) result = at::where(tokens_, result, alpha);
  if (selection_.head) {
    const at::Tensor other = alpha.clone();
    other.select(-1, *selection_.head).copy_(result.select(-1, *selection_.head));
    result = other;
  }
  return result;
}

at::Tensor GateIntervention::replaced(std::int64_t layer, const at::Tensor& alpha) const {
  const auto here = [&](const at::Tensor& means) { return means[layer].to(alpha.options()); };
  switch (rule_.mode) {
    case InterventionMode::zero:
      return at::zeros_like(alpha);
    case InterventionMode::scale:
      return alpha * rule_.scale;
    case InterventionMode::mean:
      return here(means_->heads).expand_as(alpha);
    case InterventionMode::token_mean:
      return here(means_->tokens).index_select(0, ids_.flatten()).view_as(alpha);
    default:
      return alpha.gather(1, to_device(permutations(layer, alpha.size(2)), alpha.device()));
  }
}

// int64 [B, T, H]: which position's gate each position gets. Positions that do not count keep theirs.
at::Tensor GateIntervention::permutations(std::int64_t layer, std::int64_t heads) const {
  const std::int64_t length = ids_.size(1);
  at::Tensor result =
      at::arange(length, at::kLong).view({1, length, 1}).expand({ids_.size(0), length, heads}).contiguous();
  auto* source = result.data_ptr<std::int64_t>();
  std::vector<std::vector<std::int64_t>> positions(static_cast<std::size_t>(ids_.size(0)));
  for (const TokenRow& row : rows_) {
    if (selects(row)) positions[static_cast<std::size_t>(row.row / length)].push_back(row.row % length);
  }
  for (std::size_t b = 0; b < positions.size(); ++b) {
    const std::int64_t window = first_window_ + static_cast<std::int64_t>(b);
    for (std::int64_t head = 0; head < heads; ++head) {
      std::seed_seq seeds{rule_.seed & 0xffffffffU, rule_.seed >> 32U, static_cast<std::uint64_t>(window),
                          static_cast<std::uint64_t>(layer), static_cast<std::uint64_t>(head)};
      std::mt19937_64 random(seeds);
      std::vector<std::int64_t> shuffled = positions[b];
      for (std::size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[random() % i]);
      for (std::size_t i = 0; i < shuffled.size(); ++i) {
        source[(static_cast<std::int64_t>(b) * length + positions[b][i]) * heads + head] = shuffled[i];
      }
    }
  }
  return result;
}

}  // namespace satformer::analysis
