// Forward cases: logits, loss, intermediates, every gradient.
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>

#include "satformer/core/error.h"
#include "satformer/verify/reference_case.h"

namespace satformer::verify {
namespace {

// Everything in the file that is no parameter.
constexpr std::array<std::string_view, 7> kValues{"input_ids", "labels",  "targets",   "logits",
                                                  "loss",      "lambda1", "final_norm"};
constexpr std::array<std::string_view, 6> kPrefixes{"grad.", "hidden.", "alpha.", "dwa.", "streams.", "hyper."};
constexpr std::array<std::string_view, 5> kIntermediatePrefixes{"hidden.", "alpha.", "dwa.", "streams.", "hyper."};

template <typename Prefixes>
bool starts_with_any(const std::string& name, const Prefixes& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_intermediate(const std::string& name) {
  return name == "final_norm" || name == "lambda1" || starts_with_any(name, kIntermediatePrefixes);
}

std::vector<std::string> parameter_names(const ReferenceCase& reference) {
  std::vector<std::string> names = reference.names_below("");
  std::erase_if(names, [](const std::string& name) {
    return std::find(kValues.begin(), kValues.end(), name) != kValues.end() || starts_with_any(name, kPrefixes);
  });
  return names;
}

// Keeps what the model shows, under the reference's names.
class Recorder : public nn::Observer {
 public:
  void hidden(std::int64_t layer, const at::Tensor& value) override { keep(fmt::format("hidden.{}", layer), value); }
  void gates(std::int64_t layer, const nn::GateObservation& observation) override {
    keep(fmt::format("alpha.{}", layer), observation.alpha);
  }
  void named(const std::string& name, const at::Tensor& value) override { keep(name, value); }

  const TensorMap& values() const { return values_; }

 private:
  void keep(const std::string& name, const at::Tensor& value) { values_[name] = value.detach(); }

  TensorMap values_;
};

at::Tensor checked_targets(const ReferenceCase& reference) {
  at::Tensor targets = models::shift_labels(reference.tensor("labels"));
  require(at::equal(targets, reference.tensor("targets")), "{}: targets are not labels shifted by one position",
          reference.source);
  return targets;
}

Check check_intermediates(const ReferenceCase& reference, const TensorMap& observed) {
  LargestError largest("intermediates", tolerance_for(reference, 2e-5, "intermediates "));
  for (const auto& [name, expected] : reference.file.tensors) {
    if (!is_intermediate(name)) continue;
    const auto found = observed.find(name);
    require(found != observed.end(), "{}: this {} has no intermediate {}", reference.source,
            reference.config.architecture, name);
    largest.add(relative_error(found->second, expected, name), name);
  }
  return largest.check();
}

Check check_gradients(const ReferenceCase& reference, models::LanguageModel& model) {
  LargestError largest("gradients", tolerance_for(reference, 2e-4, "grads worst "));
  for (const auto& parameter : model.named_parameters()) {
    const std::string name = "grad." + parameter.key();
    const at::Tensor& gradient = parameter.value().grad();
    const at::Tensor actual = gradient.defined() ? gradient : at::zeros_like(parameter.value());
    largest.add(relative_error(actual, reference.tensor(name), name), name);
  }
  return largest.check();
}

}  // namespace

std::vector<Check> check_forward(const ReferenceCase& reference) {
  const auto model = load_reference_model(reference, "", parameter_names(reference));
  const models::ModelInput input{.input_ids = reference.tensor("input_ids")};
  Recorder recorder;
  LargestError logits("logits", tolerance_for(reference, 2e-5, "logits "));
  {
    const at::NoGradGuard no_grad;
    const at::Tensor actual = model->logits(model->hidden_states(input, &recorder));
    logits.add(relative_error(actual, reference.tensor("logits"), "logits"), "logits");
  }
  const models::LossSum sum = model->loss(input, checked_targets(reference));
  const at::Tensor loss = sum.loss_sum / static_cast<double>(sum.num_targets);
  loss.backward();
  LargestError loss_error("loss", tolerance_for(reference, 2e-5, "loss "));
  loss_error.add(relative_error(loss.detach(), reference.tensor("loss"), "loss"), "loss");
  return {logits.check(), loss_error.check(), check_intermediates(reference, recorder.values()),
          check_gradients(reference, *model)};
}

}  // namespace satformer::verify
