// adamw_ as an operator: errors, schema, dispatch keys, meta tensors, autograd's bookkeeping.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <functional>
#include <limits>

#include "csrc/ops/adamw.h"
#include "tests/catch.h"
#include "tests/csrc/adamw_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests::adamw {
namespace {

constexpr Dtypes kFloats{at::kFloat, at::kFloat, at::kFloat, at::kFloat};

// The error of a call on two parameters [2, 3] and [4] that `spoil` has changed; nothing may be written.
std::string error_of(const std::function<void(Inputs&)>& spoil, const ops::AdamWSettings& settings = kSettings) {
  Inputs in = make_inputs({{2, 3}, {4}}, kFloats, 1);
  const at::Tensor kept = in.tensors.parameters[0].clone(), parameter = in.tensors.parameters[0];
  spoil(in);
  std::string message = message_of([&] { ops::adamw_(in.tensors, settings, in.steps); });
  CHECK(at::equal(parameter, kept));
  return message;
}

std::string error_of_setting(const ops::AdamWSettings& settings) {
  return error_of([](Inputs&) {}, settings);
}

}  // namespace

TEST_CASE("adamw_: wrong lists are named", "[ops]") {
  CHECK(error_of([](Inputs& in) { in.tensors.gradients.pop_back(); }) ==
        "adamw_: gradients must hold 2, one for each of parameters, got 1");
  CHECK(error_of([](Inputs& in) { in.tensors.exp_avgs.pop_back(); }) ==
        "adamw_: exp_avgs must hold 2, one for each of parameters, got 1");
  CHECK(error_of([](Inputs& in) { in.tensors.exp_avg_sqs.clear(); }) ==
        "adamw_: exp_avg_sqs must hold 2, one for each of parameters, got 0");
  CHECK(error_of([](Inputs& in) { in.steps.push_back(1); }) ==
        "adamw_: steps must hold 2, one for each of parameters, got 3");
  CHECK(error_of([](Inputs& in) { in.steps[1] = 0; }) == "adamw_: steps[1] must be at least 1, got 0");
  CHECK(error_of([](Inputs& in) { in.tensors.gradients[1] = at::Tensor(); }) ==
        "adamw_: gradients[1] must be a tensor, got an undefined one");
}

TEST_CASE("adamw_: wrong tensors are named", "[ops]") {
  CHECK(error_of([](Inputs& in) { in.tensors.gradients[1] = at::ones({5}); }) ==
        "adamw_: gradients[1] must be [4] like parameters[1], got [5]");
  CHECK(error_of([](Inputs& in) { in.tensors.exp_avgs[0] = at::ones({3, 2}); }) ==
        "adamw_: exp_avgs[0] must be [2, 3] like parameters[0], got [3, 2]");
  CHECK(error_of([](Inputs& in) { in.tensors.exp_avgs[0] = at::ones({3, 2}).t(); }) ==
        "adamw_: exp_avgs[0] must have the strides [3, 1] of parameters[0], got [1, 2]; copy it into at::empty_like of "
        "that tensor first");
  CHECK(error_of([](Inputs& in) { in.tensors.gradients[1] = at::ones({1}).expand({4}); }) ==
        "adamw_: gradients[1] must have the strides [1] of parameters[1], got [0]; copy it into at::empty_like of that "
        "tensor first");
  CHECK(error_of([](Inputs& in) { in.tensors.parameters[1] = at::ones({8}).slice(0, 0, 8, 2); }) ==
        "adamw_: parameters[1] must fill one stretch of memory without gaps or overlaps, got sizes [4], strides [2]; "
        "call contiguous() on it first");
  CHECK(error_of([](Inputs& in) { in.tensors.parameters[1] = at::ones({4}, at::kLong); }) ==
        "adamw_: parameters[1] must be float32, bfloat16, float16 or float64, got Long");
  CHECK(error_of([](Inputs& in) { in.tensors.gradients[0] = at::ones({2, 3}, at::kInt); }) ==
        "adamw_: gradients[0] must be float32, bfloat16, float16 or float64, got Int");
  CHECK(error_of([](Inputs& in) { in.tensors.exp_avg_sqs[1] = at::ones({4}, at::kDouble); }) ==
        "adamw_: exp_avg_sqs[1] must be Float like parameters[1], or Float, got Double");
  CHECK(error_of([](Inputs& in) { in.tensors.parameters[1] = at::ones({4}, at::kDouble); }) ==
        "adamw_: exp_avgs[1] must be Double like parameters[1], got Float");
  CHECK(error_of([](Inputs& in) { in.tensors.exp_avgs[1] = at::ones({4}, at::kBFloat16); }) ==
        "adamw_: exp_avgs[1] must be Float like parameters[1], or Float, got BFloat16");
  CHECK(error_of([](Inputs& in) { in.tensors.gradients[1] = at::ones({4}, at::TensorOptions(at::kMeta)); }) ==
        "adamw_: gradients[1] must be on cpu like parameters[1], got meta");
  CHECK(error_of([](Inputs& in) { in.tensors.gradient_factor = at::ones({1}); }) ==
        "adamw_: gradient_factor must be [], got [1]");
  CHECK(error_of([](Inputs& in) { in.tensors.gradient_factor = at::full({}, 1, at::kHalf); }) ==
        "adamw_: gradient_factor must be float32 or float64, got Half");
}

TEST_CASE("adamw_: wrong settings are named", "[ops]") {
  CHECK(error_of_setting({.lr = -1.0}) == "adamw_: lr must be finite and not negative, got -1");
  CHECK(error_of_setting({.lr = std::numeric_limits<double>::quiet_NaN()}) ==
        "adamw_: lr must be finite and not negative, got nan");
  CHECK(error_of_setting({.eps = -1e-8}) == "adamw_: eps must be finite and not negative, got -1e-08");
  CHECK(error_of_setting({.weight_decay = std::numeric_limits<double>::infinity()}) ==
        "adamw_: weight_decay must be finite and not negative, got inf");
  CHECK(error_of_setting({.beta1 = 1.0}) == "adamw_: beta1 must be in [0, 1), got 1");
  CHECK(error_of_setting({.beta2 = -0.5}) == "adamw_: beta2 must be in [0, 1), got -0.5");
}

TEST_CASE("adamw_: shared memory is refused", "[ops]") {
  const std::string why = "; a tensor that is written needs memory of its own";
  CHECK(error_of([](Inputs& in) { in.tensors.gradients[1] = in.tensors.parameters[1]; }) ==
        "adamw_: gradients[1] shares memory with parameters[1]" + why);
  CHECK(error_of([](Inputs& in) { in.tensors.exp_avg_sqs[0] = in.tensors.exp_avgs[0]; }) ==
        "adamw_: exp_avg_sqs[0] shares memory with exp_avgs[0]" + why);
  const auto overlapping = [](Inputs& in) {
    const at::Tensor memory = at::ones({9});
    in.tensors.parameters[0] = memory.slice(0, 0, 6).view({2, 3});
    in.tensors.parameters[1] = memory.slice(0, 5, 9);
  };
  CHECK(error_of(overlapping) == "adamw_: parameters[1] shares memory with parameters[0]" + why);
  const auto factor_inside = [](Inputs& in) { in.tensors.gradient_factor = in.tensors.exp_avgs[1].select(0, 2); };
  CHECK(error_of(factor_inside) == "adamw_: gradient_factor[0] shares memory with exp_avgs[1]" + why);

  // Neighbours in one storage, and gradients that are one another, are no trouble.
  Inputs in = make_inputs({{6}, {6}}, kFloats, 1);
  const at::Tensor memory = at::ones({12});
  in.tensors.parameters = {memory.slice(0, 0, 6), memory.slice(0, 6, 12)};
  in.tensors.gradients[1] = in.tensors.gradients[0];
  const Inputs before = copy_of(in);
  ops::adamw_(in.tensors, kSettings, in.steps);
  CHECK(worst_update_error(before, in, kSettings) <= 1);
}

TEST_CASE("adamw_: schema, dispatch keys, meta tensors", "[ops]") {
  CHECK(schema_of("adamw_") ==
        "satformer::adamw_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] exp_avgs, Tensor(c!)[] "
        "exp_avg_sqs, Tensor gradient_factor, *, float lr, float beta1, float beta2, float eps, float weight_decay, "
        "int[] steps) -> ()");
  CHECK(has_kernels("adamw_", {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd,
                               c10::DispatchKey::ADInplaceOrView}));
  const auto meta = [] { return at::empty({4}, at::TensorOptions(at::kMeta)); };
  ops::AdamWTensors tensors{{meta()}, {meta()}, {meta()}, {meta()}, at::empty({}, at::TensorOptions(at::kMeta))};
  ops::adamw_(tensors, kSettings, {3});
  tensors.gradients[0] = at::empty({5}, at::TensorOptions(at::kMeta));
  CHECK(message_of([&] { ops::adamw_(tensors, kSettings, {3}); }) ==
        "adamw_: gradients[0] must be [4] like parameters[0], got [5]");
}

TEST_CASE("adamw_: parameters that require grad are updated under no_grad", "[ops]") {
  Inputs in = make_inputs({{2, 3}, {4}}, kFloats, 1);
  const Inputs before = copy_of(in);
  in.tensors.parameters[1].requires_grad_();
  CHECK(message_of([&] { ops::adamw_(in.tensors, kSettings, in.steps); }) ==
        "adamw_: has no derivative, but parameters[1] requires grad; call it under no_grad");
  const auto version = [&](const std::vector<at::Tensor>& list) { return list[1]._version(); };
  const std::int64_t parameter = version(in.tensors.parameters), gradient = version(in.tensors.gradients),
                     exp_avg = version(in.tensors.exp_avgs), exp_avg_sq = version(in.tensors.exp_avg_sqs);
  {
    const at::NoGradGuard no_grad;
    ops::adamw_(in.tensors, kSettings, in.steps);
  }
  CHECK(version(in.tensors.parameters) == parameter + 1);
  CHECK(version(in.tensors.exp_avgs) == exp_avg + 1);
  CHECK(version(in.tensors.exp_avg_sqs) == exp_avg_sq + 1);
  CHECK(version(in.tensors.gradients) == gradient);
  CHECK(worst_update_error(before, in, kSettings) <= 1);
  {
    const c10::InferenceMode inference;
    ops::adamw_(in.tensors, kSettings, in.steps);
  }
  CHECK(version(in.tensors.parameters) == parameter + 2);
}

}  // namespace satformer::tests::adamw
