#include "csrc/ops/adamw_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "csrc/ops/flat_list.h"

namespace satformer::ops {
namespace {

constexpr const char* kOp = "adamw_";

void check_settings(const AdamWSettings& s) {
  const auto check_not_negative = [](const char* name, double value) {
    TORCH_CHECK_VALUE(value >= 0 && std::isfinite(value), kOp, ": ", name, " must be finite and not negative, got ",
                      value);
  };
  const auto check_decay_rate = [](const char* name, double value) {
    TORCH_CHECK_VALUE(value >= 0 && value < 1, kOp, ": ", name, " must be in [0, 1), got ", value);
  };
  check_not_negative("lr", s.lr);
  check_decay_rate("beta1", s.beta1);
  check_decay_rate("beta2", s.beta2);
  check_not_negative("eps", s.eps);
  check_not_negative("weight_decay", s.weight_decay);
}

void check_lengths(const AdamWArguments& a) {
  const auto check = [&](const char* name, std::size_t length) {
    TORCH_CHECK(length == a.parameters.size(), kOp, ": ", name, " must hold ", a.parameters.size(),
                ", one for each of parameters, got ", length);
  };
  check("gradients", a.gradients.size());
  check("exp_avgs", a.exp_avgs.size());
  check("exp_avg_sqs", a.exp_avg_sqs.size());
  check("steps", a.steps.size());
}

void check_like_parameter(const ListItem& item, const ListItem& parameter) {
  check_item_dtype(item);
  check_item_device(item, parameter);
  check_item_layout(item, parameter);
}

void check_state(const ListItem& state, const ListItem& parameter) {
  check_like_parameter(state, parameter);
  const at::ScalarType dtype = state.tensor.scalar_type(), expected = parameter.tensor.scalar_type();
  TORCH_CHECK_TYPE(dtype == expected || (dtype == at::kFloat && expected != at::kDouble), kOp, ": ", state, " must be ",
                   expected, " like ", parameter, expected == at::kDouble ? "" : ", or Float", ", got ", dtype);
}

void check_gradient_factor(const AdamWArguments& a) {
  const at::Tensor& factor = a.gradient_factor;
  TORCH_CHECK(factor.defined(), kOp, ": gradient_factor must be a tensor [], got an undefined one");
  TORCH_CHECK(factor.dim() == 0, kOp, ": gradient_factor must be [], got ", factor.sym_sizes());
  TORCH_CHECK_TYPE(factor.scalar_type() == at::kFloat || factor.scalar_type() == at::kDouble, kOp,
                   ": gradient_factor must be float32 or float64, got ", factor.scalar_type());
  if (a.parameters.empty()) return;
  TORCH_CHECK(factor.device() == a.parameters[0].device(), kOp, ": gradient_factor must be on ",
              a.parameters[0].device(), " like parameters[0], got ", factor.device());
}

// A tensor's memory.
struct Span {
  std::uintptr_t begin, end;
  const char* list;
  std::size_t index;
  bool written;
};

void add_spans(std::vector<Span>& spans, const char* list, at::TensorList tensors, bool written) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensors[i].const_data_ptr());
    if (tensors[i].numel() > 0) spans.push_back({begin, begin + tensors[i].nbytes(), list, i, written});
  }
}

}  // namespace

void check_adamw(const AdamWArguments& a) {
  check_settings(a.settings);
  check_lengths(a);
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const ListItem parameter{kOp, "parameters", i, a.parameters[i]};
    check_item_dtype(parameter);
    check_item_device(parameter, {kOp, "parameters", 0, a.parameters[0]});
    check_item_dense(parameter);
    check_like_parameter({kOp, "gradients", i, a.gradients[i]}, parameter);
    check_state({kOp, "exp_avgs", i, a.exp_avgs[i]}, parameter);
    check_state({kOp, "exp_avg_sqs", i, a.exp_avg_sqs[i]}, parameter);
    TORCH_CHECK_VALUE(a.steps[i] >= 1, kOp, ": steps[", i, "] must be at least 1, got ", a.steps[i]);
  }
  check_gradient_factor(a);
}

void check_adamw_memory(const AdamWArguments& a) {
  std::vector<Span> spans;
  add_spans(spans, "parameters", a.parameters, true);
  add_spans(spans, "exp_avgs", a.exp_avgs, true);
  add_spans(spans, "exp_avg_sqs", a.exp_avg_sqs, true);
  add_spans(spans, "gradients", a.gradients, false);
  add_spans(spans, "gradient_factor", a.gradient_factor, false);
  std::stable_sort(spans.begin(), spans.end(), [](const Span& x, const Span& y) { return x.begin < y.begin; });
  // Of those before: which one reaches furthest, and which of the written ones.
  const Span *furthest = nullptr, *furthest_written = nullptr;
  for (const Span& span : spans) {
    const Span* other = span.written ? furthest : furthest_written;
    TORCH_CHECK(other == nullptr || other->end <= span.begin, kOp, ": ", span.list, "[", span.index,
                "] shares memory with ", other->list, "[", other->index,
                "]; a tensor that is written needs memory of its own");
    if (furthest == nullptr || span.end > furthest->end) furthest = &span;
    if (span.written && (furthest_written == nullptr || span.end > furthest_written->end)) furthest_written = &span;
  }
}

std::vector<AdamWCorrection> adamw_corrections(const AdamWSettings& settings, at::IntArrayRef steps) {
  std::vector<AdamWCorrection> result;
  result.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i > 0 && steps[i] == steps[i - 1]) {
      result.push_back(result.back());
      continue;
    }
    const auto t = static_cast<double>(steps[i]);
    result.push_back({settings.lr / (1 - std::pow(settings.beta1, t)), 1 / std::sqrt(1 - std::pow(settings.beta2, t))});
  }
  return result;
}

}  // namespace satformer::ops
