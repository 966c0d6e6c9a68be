// Training runs: losses and gradient norms step by step, parameters at the end.
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "satformer/core/error.h"
#include "satformer/optim/adamw.h"
#include "satformer/optim/clip.h"
#include "satformer/verify/reference_case.h"

namespace satformer::verify {
namespace {

constexpr double kWeightDecay = 0.1, kClipNorm = 1.0;

std::set<std::string> split_names(const std::string& list) {
  std::set<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) names.insert(name);
  return names;
}

std::vector<optim::ParameterGroup> make_groups(const ReferenceCase& reference, models::LanguageModel& model) {
  std::set<std::string> decayed = split_names(reference.metadata("decayed"));
  optim::ParameterGroup decay{"decay", kWeightDecay, {}}, no_decay{"no decay", 0.0, {}};
  for (const auto& parameter : model.named_parameters()) {
    optim::ParameterGroup& group = decayed.erase(parameter.key()) > 0 ? decay : no_decay;
    group.parameters.push_back({parameter.key(), parameter.value()});
  }
  require(decayed.empty(), "{}: metadata decayed names {}, which is no parameter of this {}", reference.source,
          decayed.empty() ? "" : *decayed.begin(), reference.config.architecture);
  return {decay, no_decay};
}

struct StepResult {
  double loss;
  double grad_norm;  // before clipping
};

StepResult train_step(models::LanguageModel& model, optim::AdamW& optimizer, const at::Tensor& batch,
                      double learning_rate) {
  optimizer.zero_grad();
  const models::LossSum sum = model.loss({.input_ids = batch}, models::shift_labels(batch));
  const at::Tensor loss = sum.loss_sum / static_cast<double>(sum.num_targets);
  loss.backward();
  const std::vector<at::Tensor> gradients = optimizer.gradients();
  const double grad_norm = optim::global_norm(gradients);
  optimizer.step(learning_rate, optim::clip_factor(grad_norm, kClipNorm));
  return {loss.item<double>(), grad_norm};
}

// The vector `name` with one float32 entry a step.
const at::Tensor& step_values(const ReferenceCase& reference, const std::string& name, std::int64_t steps) {
  const at::Tensor& values = reference.tensor(name);
  require(values.dim() == 1 && values.size(0) == steps, "{}: tensor {} must have one entry for each of {} steps",
          reference.source, name, steps);
  return values;
}

at::Tensor update_of(const ReferenceCase& reference, const std::string& name) {
  const at::Tensor &after = reference.tensor("final." + name), &before = reference.tensor("init." + name);
  require(after.sizes() == before.sizes(), "{}: tensor final.{} must have the shape of init.{}", reference.source, name,
          name);
  return after - before;
}

double largest_entry(const at::Tensor& tensor) { return tensor.numel() == 0 ? 1 : tensor.abs().max().item<double>(); }

// Ten steps of AdamW amplify rounding where a gradient is near 0, so single entries differ by more than 1e-3 of the
// update between float32 and float64; the metadata gives the largest difference in absolute terms and its tensor.
double entry_tolerance(const ReferenceCase& reference) {
  constexpr double kTolerance = 1e-3;
  const auto disagreement = float64_disagreement(reference, "max abs difference ");
  if (!disagreement || !reference.file.tensors.contains("final." + disagreement->tensor)) return kTolerance;
  const double figure = disagreement->figure / largest_entry(update_of(reference, disagreement->tensor));
  return figure > kTolerance ? 10 * figure : kTolerance;
}

// In the mean over a tensor float32 does reach the tolerance, which tells apart what single entries cannot: a wrong
// weight decay, say.
double norm_tolerance(const ReferenceCase& reference) {
  const auto disagreement = float64_disagreement(reference, "worst tensor ");
  return std::max(1e-3, disagreement ? 10 * disagreement->figure : 0);
}

// Largest entry and norm of the difference, each relative to the update's.
std::vector<Check> check_final_parameters(const ReferenceCase& reference, models::LanguageModel& model) {
  LargestError entries("final_parameters", entry_tolerance(reference));
  LargestError norms("final_parameters_norm", norm_tolerance(reference));
  const at::NoGradGuard no_grad;
  for (const auto& parameter : model.named_parameters()) {
    const std::string name = "final." + parameter.key();
    const at::Tensor update = update_of(reference, parameter.key());
    const double entry_error = relative_error(parameter.value(), reference.tensor(name), largest_entry(update), name);
    const at::Tensor difference = parameter.value() - reference.tensor(name);
    entries.add(entry_error, name);
    norms.add(relative_error(at::linalg_vector_norm(difference), at::zeros({}),
                             at::linalg_vector_norm(update).item<double>(), name),
              name);
  }
  return {entries.check(), norms.check()};
}

}  // namespace

std::vector<Check> check_training(const ReferenceCase& reference) {
  const at::Tensor& batches = reference.tensor("batches");
  require(batches.dim() == 3 && batches.scalar_type() == at::kLong, "{}: tensor batches must be int64 [steps, B, T]",
          reference.source);
  const std::int64_t steps = batches.size(0);
  const at::Tensor &lr = step_values(reference, "lr", steps), &loss = step_values(reference, "loss", steps),
                   &grad_norm = step_values(reference, "grad_norm", steps);
  const auto model = load_reference_model(reference, "init.", reference.names_below("init."));
  optim::AdamW optimizer(make_groups(reference, *model), {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8});
  LargestError loss_error("loss", tolerance_for(reference, 1e-4, "loss rel diff per step "));
  LargestError norm_error("grad_norm", tolerance_for(reference, 5e-3, "grad_norm rel diff per step "));
  for (std::int64_t step = 0; step < steps; ++step) {
    const StepResult result = train_step(*model, optimizer, batches[step], lr[step].item<double>());
    const auto add = [&](LargestError& largest, double actual, const at::Tensor& expected, const char* name) {
      const std::string where = fmt::format("{} of step {}", name, step);
      largest.add(relative_error(at::scalar_tensor(actual, at::kDouble), expected[step], where), where);
    };
    add(loss_error, result.loss, loss, "loss");
    add(norm_error, result.grad_norm, grad_norm, "grad_norm");
  }
  std::vector<Check> checks = check_final_parameters(reference, *model);
  checks.insert(checks.begin(), {loss_error.check(), norm_error.check()});
  return checks;
}

}  // namespace satformer::verify
