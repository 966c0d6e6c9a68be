// hyper_connection as operators: registration, argument errors, the in-place write, meta tensors, threads.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/hyper_connection.h"
#include "tests/catch.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/hyper_connection_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {
namespace {

c10::OperatorHandle hyper_operator(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("satformer::" + name).c_str(), "");
}

}  // namespace

TEST_CASE("hyper_connection: schemas and dispatch keys are registered", "[ops]") {
  const auto schema = [](const std::string& name) { return c10::toString(hyper_operator(name).schema()); };
  CHECK(schema("hyper_connection_read") ==
        "satformer::hyper_connection_read(Tensor streams, Tensor static_alpha, Tensor static_beta, Tensor? "
        "norm_weight, Tensor? norm_bias, Tensor? dynamic_alpha_proj, Tensor? dynamic_beta_proj, Tensor? "
        "dynamic_alpha_scale, Tensor? dynamic_beta_scale, float norm_eps, bool use_tanh) -> (Tensor input, Tensor "
        "mixed, Tensor beta, Tensor kept)");
  CHECK(schema("hyper_connection_write") ==
        "satformer::hyper_connection_write(Tensor mixed, Tensor beta, Tensor out) -> Tensor");
  CHECK(schema("hyper_connection_write_") ==
        "satformer::hyper_connection_write_(Tensor(a!) mixed, Tensor beta, Tensor out) -> ()");
  for (const char* name : {"hyper_connection_read", "hyper_connection_read_backward", "hyper_connection_write",
                           "hyper_connection_write_", "hyper_connection_write_backward"}) {
    INFO(name);
    for (const c10::DispatchKey key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}) {
      CHECK(hyper_operator(name).hasKernelForDispatchKey(key));
    }
  }
  CHECK(hyper_operator("hyper_connection_write_").hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView));
}

TEST_CASE("hyper_connection: wrong arguments are named with what was expected and what was got", "[ops]") {
  HyperCase c;
  c.T = 5, c.d = 24, c.layer_norm = true;
  const auto error = [&](const std::function<void(HyperInputs&)>& spoil) {
    HyperInputs in = make_hyper(c, 1);
    spoil(in);
    return message_of([&] { ops::hyper_connection_read(in.streams, in.parameters); });
  };
  const std::string op = "hyper_connection_read: ";
  CHECK(error([](HyperInputs&) {}) == "");
  CHECK(error([](HyperInputs& x) { x.streams = x.streams[0]; }) ==
        op + "streams must have the 4 dimensions [B, T, n, d], got [5, 4, 24]");
  CHECK(error([](HyperInputs& x) { x.streams = at::ones({2, 5, 9, 24}); }) ==
        op + "streams must hold 1 to 8 streams [B, T, n, d], got [2, 5, 9, 24]");
  CHECK(error([](HyperInputs& x) { x.streams = x.streams.to(at::kLong); }) ==
        op + "streams must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(error([](HyperInputs& x) { x.streams = at::randn({2, 5, 24, 4}).transpose(2, 3); }) ==
        op + "streams must be contiguous in its last dimension, got strides [480, 96, 1, 4]; call contiguous() on it "
             "first");
  CHECK(error([](HyperInputs& x) { x.streams = x.streams.slice(3, 0, 0); }) ==
        op + "streams must have at least 1 column [B, T, n, d], got [2, 5, 4, 0]");
  CHECK(error([](HyperInputs& x) { x.parameters.norm_eps = -1; }) == op + "norm_eps must not be negative, got -1");
  CHECK(error([](HyperInputs& x) { x.parameters.static_alpha = x.parameters.static_alpha.t(); }) ==
        op + "static_alpha must be [4, 5], got [5, 4]");
  CHECK(error([](HyperInputs& x) { x.parameters.static_beta = at::ones({5}); }) ==
        op + "static_beta must be [4], got [5]");
  CHECK(error([](HyperInputs& x) { x.parameters.norm_weight.reset(); }) ==
        op + "norm_bias must be absent without norm_weight, got a tensor");
  CHECK(error([](HyperInputs& x) { x.parameters.dynamic_beta_proj.reset(); }) ==
        op + "dynamic_beta_proj is needed with norm_weight, got none");
  CHECK(error([](HyperInputs& x) { x.parameters.dynamic_alpha_proj = at::ones({24, 4}); }) ==
        op + "dynamic_alpha_proj must be [24, 5], got [24, 4]");
  CHECK(error([](HyperInputs& x) { x.parameters.dynamic_alpha_scale = at::ones({}); }) ==
        op + "dynamic_alpha_scale must be [1], got []");
  CHECK(error([](HyperInputs& x) { x.parameters.norm_weight = x.parameters.norm_weight->to(at::kLong); }) ==
        op + "norm_weight must be float32, bfloat16, float16 or float64, got Long");
  CHECK(error([](HyperInputs& x) { x.parameters.norm_bias = at::empty({24}, at::TensorOptions(at::kMeta)); }) ==
        op + "norm_bias must be on cpu like streams, got meta");

  const at::Tensor mixed = at::ones({2, 5, 4, 24}), beta = at::ones({2, 5, 4}), out = at::ones({2, 5, 24});
  CHECK(message_of([&] { ops::hyper_connection_write(mixed, beta.slice(2, 1), out); }) ==
        "hyper_connection_write: beta must be [2, 5, 4], got [2, 5, 3]");
  CHECK(message_of([&] { ops::hyper_connection_write(mixed, beta, out.slice(2, 1)); }) ==
        "hyper_connection_write: out must be [2, 5, 24], got [2, 5, 23]");
  CHECK(message_of([&] { ops::hyper_connection_write_backward(mixed[0], beta, out); }) ==
        "hyper_connection_write_backward: grad must have the 4 dimensions [B, T, n, d], got [5, 4, 24]");
  const HyperInputs in = make_hyper(c, 1);
  const auto read = ops::hyper_connection_read(in.streams, in.parameters);
  const ops::HyperConnectionRead grads{in.grad_input, in.grad_mixed.to(at::kHalf), in.grad_beta, {}};
  CHECK(message_of([&] { ops::hyper_connection_read_backward(grads, in.streams, in.parameters, read.kept); }) ==
        "hyper_connection_read_backward: grad_mixed must be Float, got Half");
}

TEST_CASE("hyper_connection_write_: writes mixed, raises its version, and refuses what autograd cannot bear", "[ops]") {
  const at::Tensor wide = at::randn({2, 3, 4, 10}), before = wide.clone();
  const at::Tensor beta = at::randn({2, 3, 4}), out = at::randn({2, 3, 8});
  at::Tensor mixed = wide.slice(3, 1, 9);
  const at::Tensor expected = ops::hyper_connection_write(mixed, beta, out);
  const auto version = wide._version();
  CHECK(&ops::hyper_connection_write_(mixed, beta, out) == &mixed);
  CHECK(wide._version() == version + 1);  // a view shares its base's counter
  CHECK(at::equal(mixed, expected));
  CHECK(at::equal(wide.select(3, 0), before.select(3, 0)));
  CHECK(at::equal(wide.select(3, 9), before.select(3, 9)));
  {
    const c10::InferenceMode inference;
    ops::hyper_connection_write_(mixed, beta, out);
  }
  CHECK(wide._version() == version + 2);

  at::Tensor refused = leaf(at::ones({2, 3, 4, 8}));
  CHECK(message_of([&] { ops::hyper_connection_write_(refused, beta, out); }) ==
        "a leaf Variable that requires grad is being used in an in-place operation.");
  CHECK(at::equal(refused, at::ones({2, 3, 4, 8})));
  at::Tensor self = at::ones({2, 3, 4, 8});
  CHECK(message_of([&] { ops::hyper_connection_write_(self, beta, self.select(2, 0)); }) ==
        "hyper_connection_write_: out must not share memory with mixed, which is overwritten; clone it or use "
        "hyper_connection_write");
  CHECK(at::equal(self, at::ones({2, 3, 4, 8})));
}

TEST_CASE("hyper_connection: reads and in-place writes in a chain give the gradients of the out-of-place ones",
          "[ops]") {
  HyperCase c;
  c.dtype = c.parameters_dtype = at::kDouble;
  const HyperInputs in = make_hyper(c, 2);
  const auto run = [&](bool in_place) {
    const HyperInputs x = leaves(in);
    at::Tensor streams = x.streams;
    for (int module = 0; module < 3; ++module) {
      auto read = ops::hyper_connection_read(streams, x.parameters);
      const at::Tensor out = read.input * 0.5;
      streams = in_place ? ops::hyper_connection_write_(read.mixed, read.beta, out)
                         : ops::hyper_connection_write(read.mixed, read.beta, out);
    }
    return torch::autograd::grad({streams}, ops::tensors_of(x), {in.grad_mixed});
  };
  const auto got = run(true), expected = run(false);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(at::equal(got[i], expected[i]));
}

TEST_CASE("hyper_connection: any number of threads gives the same bits", "[ops]") {
  HyperCase c;
  c.B = 3, c.T = 150, c.d = 24;
  for (const bool layer_norm : {false, true}) {
    c.layer_norm = layer_norm;
    const HyperInputs in = make_hyper(c, 3);
    const auto runs = with_threads([&] {
      const HyperInputs x = leaves(in);
      const auto read = ops::hyper_connection_read(x.streams, x.parameters);
      const at::Tensor out = ops::hyper_connection_write(read.mixed, read.beta, read.input);
      auto result = torch::autograd::grad({out}, ops::tensors_of(x), {in.grad_mixed});
      result.push_back(out);
      return result;
    });
    for (std::size_t i = 0; i < runs[0].size(); ++i) CHECK(at::equal(runs[0][i], runs[1][i]));
  }
}

TEST_CASE("hyper_connection: a second derivative is refused with a hint", "[ops]") {
  const HyperInputs in = make_hyper(HyperCase{}, 4), x = leaves(in);
  const auto first = [&] {
    torch::autograd::grad({ops::hyper_connection_read(x.streams, x.parameters).input}, {x.streams},
                          {leaf(in.grad_input)}, true, /*create_graph=*/true);
  };
  CHECK(message_of(first) ==
        "hyper_connection_read_backward: has no derivative of its own; for second derivatives use the composite "
        "reference");
}

TEST_CASE("hyper_connection: meta tensors give shapes, dtypes and the same errors", "[ops]") {
  const auto meta = [](at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype));
  };
  const at::Tensor streams = meta({2, 5, 4, 8}, at::kBFloat16);
  ops::HyperConnection p;
  p.static_alpha = meta({4, 5}, at::kFloat);
  p.static_beta = meta({4}, at::kFloat);
  p.norm_weight = meta({8}, at::kFloat);
  p.dynamic_alpha_proj = meta({8, 5}, at::kFloat);
  p.dynamic_beta_proj = meta({8}, at::kBFloat16);
  p.dynamic_alpha_scale = p.dynamic_beta_scale = meta({1}, at::kFloat);
  const auto read = ops::hyper_connection_read(streams, p);
  CHECK(read.input.sizes() == at::IntArrayRef({2, 5, 8}));
  CHECK(read.mixed.scalar_type() == at::kBFloat16);
  CHECK(read.beta.scalar_type() == at::kFloat);
  CHECK(read.kept.sizes() == at::IntArrayRef({2, 5, 4, 8}));
  const auto gradients = ops::hyper_connection_read_backward(read, streams, p, read.kept);
  CHECK(gradients.streams.sizes() == streams.sizes());
  CHECK(gradients.dynamic_beta_proj.scalar_type() == at::kBFloat16);
  CHECK_FALSE(gradients.norm_bias.defined());
  CHECK(ops::hyper_connection_write(read.mixed, read.beta, read.input).is_meta());
  CHECK(message_of([&] { ops::hyper_connection_write(read.mixed, read.beta, read.mixed); }) ==
        "hyper_connection_write: out must be [2, 5, 8], got [2, 5, 4, 8]");
}

}  // namespace satformer::tests
