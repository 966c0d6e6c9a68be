// gated_value_mix as an operator: registration, argument errors, the in-place form, meta tensors, autocast.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>

#include "csrc/ops/checks.h"
#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/gated_value_mix_reference.h"
#include "tests/catch.h"
#include "tests/csrc/gated_value_mix_support.h"

namespace satformer::tests {
namespace {

using ops::Gate;

// The first line of the error that `call` throws; empty when it throws none.
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

MixInputs inputs_of(at::ScalarType dtype) {
  MixCase c;
  c.sizes = {2, 5, 4, 8}, c.dtype = dtype;
  return make_inputs(c, 21);
}

c10::OperatorHandle operator_of(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("satformer::" + name).c_str(), "");
}

}  // namespace

TEST_CASE("gated_value_mix: schemas and dispatch keys are registered", "[ops]") {
  const auto schema = [](const std::string& name) { return c10::toString(operator_of(name).schema()); };
  CHECK(schema("gated_value_mix") ==
        "satformer::gated_value_mix(Tensor v, Tensor first_values, Tensor logits, str gate=\"relu\", Tensor? "
        "scale=None, Tensor? shift=None) -> Tensor");
  CHECK(schema("gated_value_mix_") ==
        "satformer::gated_value_mix_(Tensor(a!) v, Tensor first_values, Tensor logits, str gate=\"relu\", Tensor? "
        "scale=None, Tensor? shift=None) -> ()");
  CHECK(schema("gated_value_mix_backward") ==
        "satformer::gated_value_mix_backward(Tensor grad, Tensor first_values, Tensor logits, str gate, Tensor? "
        "scale, Tensor? shift, bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor)");
  for (const char* name : {"gated_value_mix", "gated_value_mix_", "gated_value_mix_backward"}) {
    INFO(name);
    for (const c10::DispatchKey key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}) {
      CHECK(operator_of(name).hasKernelForDispatchKey(key));
    }
  }
  for (const char* name : {"gated_value_mix", "gated_value_mix_"}) {
    CHECK(operator_of(name).hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU));
    CHECK(operator_of(name).hasKernelForDispatchKey(c10::DispatchKey::AutocastCUDA));
  }
  CHECK(operator_of("gated_value_mix_").hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView));
}

TEST_CASE("gate names", "[ops]") {
  for (const Gate gate : kAllGates) CHECK(ops::gate_from_name(ops::gate_name(gate)) == gate);
  CHECK_FALSE(ops::find_gate("Relu").has_value());
  CHECK(error_of([] { ops::gate_from_name("silu"); }) ==
        "gate must be one of relu, sigmoid, softmax, softmax_sigmoid, tanh, identity, got \"silu\"");
}

TEST_CASE("gated_value_mix: wrong arguments are named with what was expected and what was got", "[ops]") {
  const MixInputs in = inputs_of(at::kFloat);
  const auto error = [](const at::Tensor& v, const at::Tensor& first, const at::Tensor& logits,
                        const std::optional<at::Tensor>& scale = {}, const std::optional<at::Tensor>& shift = {}) {
    return error_of([&] { ops::gated_value_mix(v, first, logits, Gate::kRelu, scale, shift); });
  };
  const std::string op = "gated_value_mix: ";
  CHECK(error(in.v[0], in.first_values, in.logits) ==
        op + "v must have the 4 dimensions [B, T, H_kv, hd], got [5, 4, 8]");
  CHECK(error(in.v.to(at::kLong), in.first_values, in.logits) ==
        op + "v must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(error(in.v, in.first_values.slice(3, 0, 4), in.logits) ==
        op + "first_values must be [2, 5, 4, 8] like v, got [2, 5, 4, 4]");
  CHECK(error(in.v, in.first_values.to(at::kBFloat16), in.logits) ==
        op + "first_values must be Float like v, got BFloat16");
  CHECK(error(in.v, in.first_values, in.logits.slice(2, 0, 3)) ==
        op + "logits must be [2, 5, 4] like v without its last dimension, got [2, 5, 3]");
  CHECK(error(in.v, in.first_values, in.logits.to(at::kHalf)) ==
        op + "logits must be float32 or Float like v, got Half");
  CHECK(error(in.v.transpose(2, 3).contiguous().transpose(2, 3), in.first_values, in.logits) ==
        op + "v must be contiguous in its last dimension, got strides [160, 32, 1, 4]; call contiguous() on it first");
  CHECK(error(in.v, in.first_values.slice(3, 0, 1).expand_as(in.v), in.logits) ==
        op + "first_values must be contiguous in its last dimension, got strides [160, 32, 8, 0]; call contiguous() "
             "on it first");
  CHECK(error(in.v, in.first_values, in.logits, at::ones({5})) ==
        op + "scale must broadcast to the shape of logits [2, 5, 4], got [5]");
  CHECK(error(in.v, in.first_values, in.logits, at::ones({}).to(at::kLong)) ==
        op + "scale must be float32, bfloat16, float16 or float64, got Long");
  CHECK(error(in.v, in.first_values, in.logits, {}, at::ones({1, 2, 5, 4})) ==
        op + "shift must broadcast to the shape of logits [2, 5, 4], got [1, 2, 5, 4]");
  CHECK(error(in.v, at::empty_like(in.v, at::TensorOptions(at::kMeta)), in.logits) ==
        op + "first_values must be on cpu like v, got meta");
  const auto unknown_gate = [&] {
    operator_of("gated_value_mix")
        .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, std::string_view,
                          const std::optional<at::Tensor>&, const std::optional<at::Tensor>&)>()
        .call(in.v, in.first_values, in.logits, "gelu", {}, {});
  };
  CHECK(error_of(unknown_gate) ==
        op + "gate must be one of relu, sigmoid, softmax, softmax_sigmoid, tanh, identity, got \"gelu\"");
  CHECK(error_of([&] {
          ops::gated_value_mix_backward(in.grad.slice(1, 0, 4), in.first_values, in.logits, Gate::kRelu, {}, {}, {});
        }) == "gated_value_mix_backward: first_values must be [2, 4, 4, 8] like grad, got [2, 5, 4, 8]");
}

TEST_CASE("gated_value_mix_: writes a slice of a packed projection and nothing else", "[ops]") {
  const at::Tensor packed = at::randn({2, 3, 3, 4, 8});
  const at::Tensor before = packed.clone(), first = at::randn({2, 3, 4, 8}), logits = at::ones({2, 3, 4});
  at::Tensor v = packed.select(2, 1);
  const auto version = packed._version();
  at::Tensor& returned = ops::gated_value_mix_(v, first, logits);
  CHECK(&returned == &v);
  CHECK(packed._version() == version + 1);  // a view shares its base's counter
  CHECK(at::equal(packed.select(2, 1), before.select(2, 1) + first));
  CHECK(at::equal(packed.select(2, 0), before.select(2, 0)));
  CHECK(at::equal(packed.select(2, 2), before.select(2, 2)));
}

TEST_CASE("gated_value_mix_: autograd through a view of an intermediate", "[ops]") {
  const MixInputs in = inputs_of(at::kFloat);
  const auto run = [&](bool in_place) {
    const at::Tensor leaf = at::cat({in.v, in.grad}, 3).detach().requires_grad_();
    const at::Tensor first = in.first_values.detach().requires_grad_(), logits = in.logits.detach().requires_grad_();
    const at::Tensor packed = leaf * 2;
    at::Tensor v = packed.slice(3, 0, 8);
    at::Tensor out;
    if (in_place) {
      ops::gated_value_mix_(v, first, logits, Gate::kTanh);
      CHECK(v.grad_fn() != nullptr);
      out = packed;
    } else {
      out = at::cat({ops::gated_value_mix(v, first, logits, Gate::kTanh), packed.slice(3, 8)}, 3);
    }
    return torch::autograd::grad({(out * out).sum()}, {leaf, first, logits});
  };
  const auto got = run(true), expected = run(false);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(at::equal(got[i], expected[i]));
}

TEST_CASE("gated_value_mix_: refuses what autograd or the memory layout cannot bear, before writing", "[ops]") {
  const MixInputs in = inputs_of(at::kFloat);
  const at::Tensor original = in.v.clone();
  at::Tensor leaf = in.v.detach().requires_grad_();
  CHECK(error_of([&] { ops::gated_value_mix_(leaf, in.first_values, in.logits); }) ==
        "a leaf Variable that requires grad is being used in an in-place operation.");
  CHECK(at::equal(leaf, original));

  at::Tensor v = in.v;
  const at::Tensor logits = in.logits.detach().requires_grad_();
  CHECK(error_of([&] { ops::gated_value_mix_(v, v, logits); }) ==
        "gated_value_mix_: first_values is needed for the gradients but shares memory with v, which is overwritten; "
        "clone it or use gated_value_mix");
  at::Tensor expanded = in.v.slice(0, 0, 1).expand_as(in.v);
  CHECK(error_of([&] { ops::gated_value_mix_(expanded, in.first_values, in.logits); }) != "");
  const at::Tensor longer = at::randn({3, 5, 4, 8});
  at::Tensor head = longer.slice(0, 0, 2);
  CHECK(error_of([&] { ops::gated_value_mix_(head, longer.slice(0, 1, 3), in.logits); }) != "");
  CHECK(at::equal(in.v, original));

  // Without gradients v may serve as its own first values.
  ops::gated_value_mix_(v, v, at::ones({2, 5, 4}));
  CHECK(at::equal(v, original * 2));
}

TEST_CASE("gated_value_mix_: changing what was saved for the backward is an error there", "[ops]") {
  const MixInputs in = inputs_of(at::kFloat);
  const at::Tensor first = in.first_values.clone(), logits = in.logits.detach().requires_grad_();
  at::Tensor v = in.v.clone();
  ops::gated_value_mix_(v, first, logits);
  first.mul_(2);
  CHECK_THROWS_WITH(v.sum().backward(), Catch::Contains("modified by an inplace operation"));
}

TEST_CASE("gated_value_mix_: the version counter sees a write in inference mode", "[ops]") {
  const MixInputs in = inputs_of(at::kFloat);
  at::Tensor v = in.v;
  const auto version = v._version();
  {
    const c10::InferenceMode inference;
    ops::gated_value_mix_(v, in.first_values, in.logits);
  }
  CHECK(v._version() == version + 1);
  {
    const at::NoGradGuard no_grad;
    ops::gated_value_mix_(v, in.first_values, in.logits);
  }
  CHECK(v._version() == version + 2);
}

TEST_CASE("gated_value_mix: v alone, or nothing, requires grad", "[ops]") {
  const MixInputs in = inputs_of(at::kFloat);
  const at::Tensor v = in.v.detach().requires_grad_();
  const auto grads = torch::autograd::grad({ops::gated_value_mix(v, in.first_values, in.logits)}, {v}, {in.grad});
  CHECK(at::equal(grads[0], in.grad));
  CHECK_FALSE(ops::gated_value_mix(in.v, in.first_values, in.logits).requires_grad());
}

TEST_CASE("gated_value_mix: meta tensors give shape, dtype and the same errors", "[ops]") {
  const auto meta = [](at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype));
  };
  const at::Tensor v = meta({2, 5, 4, 8}, at::kHalf), logits = meta({2, 5, 4}, at::kFloat),
                   scale = meta({4}, at::kFloat);
  const at::Tensor out = ops::gated_value_mix(v.transpose(0, 1), v.transpose(0, 1), logits.transpose(0, 1));
  CHECK(out.sizes() == at::IntArrayRef({5, 2, 4, 8}));
  CHECK(out.scalar_type() == at::kHalf);
  CHECK(out.is_meta());
  CHECK(out.is_contiguous());
  const auto [first, to_logits, to_scale, to_shift] =
      ops::gated_value_mix_backward(v, v, logits, Gate::kRelu, scale, {}, {true, true, true, true});
  CHECK(first.sizes() == v.sizes());
  CHECK(to_logits.scalar_type() == at::kFloat);
  CHECK(to_scale.sizes() == scale.sizes());
  CHECK_FALSE(to_shift.defined());
  CHECK(error_of([&] { ops::gated_value_mix(v, v, meta({2, 5, 3}, at::kFloat)); }) ==
        "gated_value_mix: logits must be [2, 5, 4] like v without its last dimension, got [2, 5, 3]");
}

TEST_CASE("gated_value_mix: autocast takes values in its dtype and keeps float32 logits", "[ops]") {
  const MixInputs in = inputs_of(at::kFloat);
  const at::Tensor scale = at::ones({4}) * 0.3;
  const auto low = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  at::Tensor mixed, mixed_low_logits, v = in.v.clone();
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  mixed = ops::gated_value_mix(in.v, low(in.first_values), in.logits, Gate::kSigmoid, scale);
  mixed_low_logits = ops::gated_value_mix(in.v, in.first_values, in.logits.to(at::kHalf), Gate::kSigmoid);
  ops::gated_value_mix_(v, low(in.first_values), low(in.logits), Gate::kSigmoid);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  CHECK(mixed.scalar_type() == at::kBFloat16);
  CHECK(at::equal(mixed, ops::gated_value_mix(low(in.v), low(in.first_values), in.logits, Gate::kSigmoid, scale)));
  CHECK(at::equal(mixed_low_logits,
                  ops::gated_value_mix(low(in.v), low(in.first_values), low(in.logits.to(at::kHalf)), Gate::kSigmoid)));
  CHECK(v.scalar_type() == at::kFloat);  // written in place: its dtype stays
  CHECK(at::equal(v, ops::gated_value_mix(in.v, low(in.first_values).to(at::kFloat), low(in.logits).to(at::kFloat),
                                          Gate::kSigmoid)));
}

}  // namespace satformer::tests
