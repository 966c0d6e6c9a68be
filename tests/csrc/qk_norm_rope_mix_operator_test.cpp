// qk_norm_rope_mix as an operator: registration, argument errors, writes, meta tensors, autocast.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/qk_norm_rope_mix.h"
#include "tests/catch.h"
#include "tests/csrc/qk_norm_rope_mix_support.h"

namespace satformer::tests::attention {
namespace {

using ops::Gate;
using ops::ValueMix;

constexpr std::array<bool, 5> kEverything{true, true, true, true, true};

c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

Inputs inputs_with(ValueMix mix) {
  Case c;
  c.sizes = {2, 5, 4, 2, 8}, c.mix = mix;
  return make_inputs(c, 21);
}

at::Tensor meta_like(const at::Tensor& x) {
  return x.defined() ? at::empty(x.sizes(), x.options().device(at::kMeta)) : at::Tensor();
}

}  // namespace

TEST_CASE("qk_norm_rope_mix: schemas and dispatch keys are registered", "[ops]") {
  const auto forward = operator_named("satformer::qk_norm_rope_mix");
  const auto backward = operator_named("satformer::qk_norm_rope_mix_backward");
  CHECK(
      c10::toString(forward.schema()) ==
      "satformer::qk_norm_rope_mix(Tensor q, Tensor k, Tensor v, Tensor cos, Tensor sin, Tensor? q_weight=None, "
      "Tensor? k_weight=None, float eps=1.0000000000000001e-05, Tensor? first_values=None, Tensor? logits=None, str "
      "gate=\"relu\", Tensor? lambda1=None, Tensor? lambda2=None, bool copy_values=True) -> (Tensor, Tensor, Tensor)");
  CHECK(c10::toString(backward.schema()) ==
        "satformer::qk_norm_rope_mix_backward(Tensor grad_q, Tensor grad_k, Tensor? grad_v, Tensor? q, Tensor? k, "
        "Tensor? v, Tensor cos, Tensor sin, Tensor? q_weight, Tensor? k_weight, float eps, Tensor? first_values, "
        "Tensor? logits, str gate, Tensor? lambda1, Tensor? lambda2, Tensor(a!) q_target, Tensor(b!) k_target, "
        "Tensor(c!)? v_target, Tensor(d!)? logits_target, Tensor(e!)? first_values_target, bool[5] output_mask) -> "
        "(Tensor, Tensor, Tensor, Tensor, Tensor)");
  for (const auto& op : {forward, backward}) {
    for (const c10::DispatchKey key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}) {
      CHECK(op.hasKernelForDispatchKey(key));
    }
  }
  CHECK(forward.hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU));
  CHECK(forward.hasKernelForDispatchKey(c10::DispatchKey::AutocastCUDA));
  CHECK(backward.hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView));
}

TEST_CASE("qk_norm_rope_mix: wrong arguments are named with what was expected and what was got", "[ops]") {
  const Inputs x = inputs_with(ValueMix::kSelective);
  const auto error = [&](const std::function<void(ops::MixInputs&)>& change, ValueMix mix = ValueMix::kSelective) {
    ops::MixInputs in = inputs_with(mix).in;
    change(in);
    return error_of([&] { ops::qk_norm_rope_mix(in); });
  };
  using In = ops::MixInputs;
  const std::string op = "qk_norm_rope_mix: ";
  CHECK(error([](In& in) { in.q = in.q[0]; }) == op + "q must have the 4 dimensions [B, T, H, hd], got [5, 4, 8]");
  CHECK(error([](In& in) { in.q = in.q.to(at::kLong); }) ==
        op + "q must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(error([](In& in) { in.q = in.q.slice(3, 0, 7); }) == op + "q must have an even head dim of at least 2, got 7");
  CHECK(error([](In& in) { in.q = in.q.transpose(2, 3).contiguous().transpose(2, 3); }) ==
        op + "q must be contiguous in its last dimension, got strides [160, 32, 1, 4]; call contiguous() on it first");
  CHECK(error([](In& in) { in.k = in.k.slice(1, 0, 4); }) == op + "k must be [2, 5, H_kv, 8] like q, got [2, 4, 2, 8]");
  CHECK(error([](In& in) { in.k = in.k.to(at::kHalf); }) == op + "k must be Float like q, got Half");
  CHECK(error([](In& in) { in.v = in.v.slice(2, 0, 1); }) == op + "v must be [2, 5, 2, 8] like k, got [2, 5, 1, 8]");
  CHECK(error([](In& in) { in.cos = in.cos.slice(2, 0, 3); }) ==
        op + "cos must be [T, 1, hd/2] = [5, 1, 4] or [B, T, 1, hd/2] = [2, 5, 1, 4], got [5, 1, 3]");
  CHECK(error([](In& in) { in.sin = in.sin.expand({2, 5, 1, 4}); }) ==
        op + "sin must be [5, 1, 4] like cos, got [2, 5, 1, 4]");
  CHECK(error([](In& in) { in.sin = in.sin.to(at::kDouble); }) == op + "sin must be Float beside Float q, got Double");
  CHECK(error([](In& in) { in.k_weight = at::Tensor(); }) ==
        op + "q_weight and k_weight must both be given or both be absent, got q_weight given, k_weight absent");
  CHECK(error([](In& in) { in.k_weight = at::ones({4}); }) == op + "k_weight must be [8], the head dim, got [4]");
  CHECK(error([](In& in) { in.q_weight = at::ones({16}).slice(0, 0, 16, 2); }) ==
        op + "q_weight must be contiguous, got strides [2]");
  CHECK(error([](In& in) { in.q_weight = in.q_weight.to(at::kBFloat16); }) ==
        op + "q_weight must be Float beside Float q, got BFloat16");
  CHECK(error([](In& in) { in.eps = -1; }) == op + "eps must not be negative, got -1");
  CHECK(error([](In& in) { in.first_values = in.first_values.slice(0, 0, 1); }) ==
        op + "first_values must be [2, 5, 2, 8] like k, got [1, 5, 2, 8]");
  CHECK(error([](In& in) { in.first_values = at::Tensor(); }) ==
        op + "first_values must be given with logits, or with lambda1 and lambda2, or all four be absent, got "
             "first_values absent, logits given, lambda1 absent, lambda2 absent");
  CHECK(error([](In& in) { in.lambda2 = at::ones({}); }) ==
        op + "first_values must be given with logits, or with lambda1 and lambda2, or all four be absent, got "
             "first_values given, logits given, lambda1 absent, lambda2 given");
  CHECK(error([](In& in) { in.lambda1 = at::ones({1}); }, ValueMix::kStatic) ==
        op + "lambda1 must be a scalar [], got [1]");
  CHECK(error([](In& in) { in.lambda2 = at::ones({}, at::kHalf); }, ValueMix::kStatic) ==
        op + "lambda2 must be Float beside Float q, got Half");
  CHECK(error([](In& in) { in.logits = in.logits.slice(2, 0, 1); }) ==
        op + "logits must be [2, 5, 2] like k without its last dimension, got [2, 5, 1]");
  CHECK(error([](In& in) { in.logits = in.logits.to(at::kHalf); }) ==
        op + "logits must be float32 or Float like k, got Half");
  CHECK(error([](In& in) { in.v = meta_like(in.v); }) == op + "v must be on cpu like k, got meta");
  CHECK(error([](In& in) { in.cos = meta_like(in.cos); }) == op + "cos must be on cpu like q, got meta");
  const auto unknown_gate = [&] {
    operator_named("satformer::qk_norm_rope_mix")
        .typed<ops::FlatSignature<ops::MixOutputs(const ops::MixInputs&)>::Type>()
        .call(x.in.q, x.in.k, x.in.v, x.in.cos, x.in.sin, {}, {}, 1e-5, {}, {}, "gelu", {}, {}, true);
  };
  CHECK(error_of(unknown_gate) ==
        op + "gate must be one of relu, sigmoid, softmax, softmax_sigmoid, tanh, identity, got \"gelu\"");
}

TEST_CASE("qk_norm_rope_mix_backward: wrong arguments are named with what was expected and what was got", "[ops]") {
  const auto error = [&](const std::function<void(Inputs&)>& change, ValueMix mix = ValueMix::kSelective) {
    Inputs x = inputs_with(mix);
    change(x);
    return error_of([&] { ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything); });
  };
  const std::string op = "qk_norm_rope_mix_backward: ";
  CHECK(error([](Inputs& x) { x.grads.k = x.grads.k.slice(1, 0, 4); }) ==
        op + "grad_k must be [2, 5, H_kv, 8] like grad_q, got [2, 4, 2, 8]");
  CHECK(error([](Inputs& x) { x.in.q = at::Tensor(); }) ==
        op + "q and k must be given with q_weight and k_weight, got q absent, k given");
  CHECK(error([](Inputs& x) { x.in.v = at::Tensor(); }, ValueMix::kStatic) ==
        op + "v must be given with lambda1 and lambda2, got it absent");
  CHECK(error([](Inputs& x) { x.in.k = x.in.k.slice(2, 0, 1); }) ==
        op + "k must be [2, 5, 2, 8] like grad_k, got [2, 5, 1, 8]");
  CHECK(error([](Inputs& x) { x.targets.q = x.targets.q.slice(0, 0, 1); }) ==
        op + "q_target must be [2, 5, 4, 8] like grad_q, got [1, 5, 4, 8]");
  CHECK(error([](Inputs& x) {
          x.targets.k = x.targets.k.slice(0, 0, 1).expand({2, 5, 2, 8});
        }).starts_with("unsupported operation: more than one element of the written-to tensor"));
  CHECK(error([](Inputs& x) { x.targets.v = at::Tensor(); }) ==
        op + "grad_v and v_target must both be given, got grad_v given, v_target absent");
  CHECK(error([](Inputs& x) { x.targets.v = at::Tensor(); }, ValueMix::kNone) ==
        op + "grad_v and v_target must both be given or, without a mix, both be absent, got grad_v given, v_target "
             "absent");
  CHECK(error([](Inputs& x) { x.targets.logits = at::Tensor(); }) ==
        op + "logits_target must be given with logits, got it absent");
  CHECK(error([](Inputs& x) { x.targets.logits = at::ones({2, 5, 2}); }, ValueMix::kStatic) ==
        op + "logits_target must be absent without logits, got it given");
  CHECK(error([](Inputs& x) { x.targets.logits = x.targets.logits.to(at::kHalf); }) ==
        op + "logits_target must be Float like logits, got Half");
  CHECK(error([](Inputs& x) { x.targets.first_values = at::ones({2, 5, 2, 8}); }, ValueMix::kNone) ==
        op + "first_values_target must be absent without first_values, got it given");
  CHECK(error([](Inputs& x) { x.targets.first_values = at::ones({2, 5, 2, 8}, at::kDouble); }) ==
        op + "first_values_target must be Float or Float, got Double");
  CHECK(error([](Inputs& x) { x.targets.first_values = at::ones({2, 5, 2, 4}); }) ==
        op + "first_values_target must be [2, 5, 2, 8] like grad_k, got [2, 5, 2, 4]");
}

TEST_CASE("qk_norm_rope_mix_backward: writes its slices of a packed gradient and nothing else", "[ops]") {
  const Inputs x = inputs_with(ValueMix::kSelective);
  const std::int64_t width = (4 + 2 * 2) * 8 + 2;
  const at::Tensor wider = at::ones({2, 5, width + 3}) * 7;
  const auto heads = [&](std::int64_t begin, std::int64_t n) {
    return wider.slice(2, begin, begin + n * 8).view({2, 5, n, 8});
  };
  const ops::MixGradientTargets targets{heads(0, 4), heads(32, 2), heads(48, 2), wider.slice(2, 64, 66)};
  const auto version = wider._version();
  ops::qk_norm_rope_mix_backward(x.in, x.grads, targets, kEverything);
  CHECK(wider._version() > version);
  CHECK(at::equal(wider.slice(2, width), at::ones({2, 5, 3}) * 7));
  ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything);
  CHECK(at::equal(targets.q, x.targets.q));
  CHECK(at::equal(targets.k, x.targets.k));
  CHECK(at::equal(targets.v, x.targets.v));
  CHECK(at::equal(targets.logits, x.targets.logits));
}

TEST_CASE("qk_norm_rope_mix_backward: in inference mode the version counters see the writes", "[ops]") {
  const Inputs x = inputs_with(ValueMix::kSelective);
  const auto version = x.targets.q._version();
  {
    const c10::InferenceMode inference;
    ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything);
  }
  CHECK(x.targets.q._version() > version);
}

TEST_CASE("qk_norm_rope_mix_backward: refuses to be differentiated", "[ops]") {
  Inputs x = inputs_with(ValueMix::kNone);
  x.in.q.requires_grad_();
  CHECK(error_of([&] { ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything); }) ==
        "qk_norm_rope_mix_backward: writes its targets and has no derivative of its own; call it without gradient "
        "mode, or differentiate qk_norm_rope_mix twice");
  const at::NoGradGuard no_grad;
  CHECK(ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything).q_weight.defined());
}

TEST_CASE("qk_norm_rope_mix: each argument alone, or none, requires grad", "[ops]") {
  for (const ValueMix mix : kAllMixes) {
    const Inputs x = inputs_with(mix);
    ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything);
    const ops::MixOutputs plain = ops::qk_norm_rope_mix(x.in);
    CHECK_FALSE(plain.q.requires_grad());
    CHECK_FALSE(plain.v.requires_grad());
    const auto all = [&] {
      const ops::MixInputs in = leaves(x.in);
      const ops::MixOutputs out = ops::qk_norm_rope_mix(in);
      return torch::autograd::grad({out.q, out.k, out.v}, differentiable(in), {x.grads.q, x.grads.k, x.grads.v});
    }();
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO("mix " << static_cast<int>(mix) << " argument " << i);
      const ops::MixInputs in = leaves(x.in);
      const auto list = differentiable(in);
      for (std::size_t j = 0; j < list.size(); ++j) list[j].requires_grad_(j == i);
      const ops::MixOutputs out = ops::qk_norm_rope_mix(in);
      const auto one = torch::autograd::grad({out.q, out.k, out.v}, {list[i]}, {x.grads.q, x.grads.k, x.grads.v});
      CHECK(at::equal(one[0], all[i]));
    }
  }
}

TEST_CASE("qk_norm_rope_mix: v itself passes its gradient through where nothing is mixed", "[ops]") {
  Inputs x = inputs_with(ValueMix::kNone);
  x.in.copy_values = false;
  const ops::MixInputs in = leaves(x.in);
  const ops::MixOutputs out = ops::qk_norm_rope_mix(in);
  const auto got = torch::autograd::grad({out.q, out.v}, {in.q, in.v}, {x.grads.q, x.grads.v});
  ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything);
  CHECK(at::equal(got[0], x.targets.q));
  CHECK(at::equal(got[1], x.grads.v));
}

TEST_CASE("qk_norm_rope_mix: meta tensors give shapes, dtypes and the same errors", "[ops]") {
  for (const ValueMix mix : kAllMixes) {
    Inputs x = inputs_with(mix);
    for (at::Tensor* t : {&x.in.q, &x.in.k, &x.in.v, &x.in.cos, &x.in.sin, &x.in.q_weight, &x.in.k_weight,
                          &x.in.first_values, &x.in.logits, &x.in.lambda1, &x.in.lambda2, &x.grads.q, &x.grads.k,
                          &x.grads.v, &x.targets.q, &x.targets.k, &x.targets.v, &x.targets.logits}) {
      *t = meta_like(*t);
    }
    const ops::MixOutputs out = ops::qk_norm_rope_mix(x.in);
    CHECK(out.q.is_meta());
    CHECK(out.q.sizes() == x.in.q.sizes());
    CHECK(out.k.sizes() == x.in.k.sizes());
    CHECK(out.v.sizes() == x.in.v.sizes());
    const auto returned = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kEverything);
    CHECK(returned.q_weight.sizes() == at::IntArrayRef{8});
    CHECK(returned.first_values.defined() == (mix != ValueMix::kNone));
    CHECK(returned.lambda1.defined() == (mix == ValueMix::kStatic));
    x.in.v = x.in.v.slice(2, 0, 1);
    CHECK(error_of([&] { ops::qk_norm_rope_mix(x.in); }) ==
          "qk_norm_rope_mix: v must be [2, 5, 2, 8] like k, got [2, 5, 1, 8]");
  }
}

TEST_CASE("qk_norm_rope_mix: autocast takes values in its dtype and keeps float32 logits, weights and tables",
          "[ops]") {
  const Inputs x = inputs_with(ValueMix::kSelective);
  ops::MixInputs low = x.in;
  for (at::Tensor* t : {&low.q, &low.k, &low.v, &low.first_values}) *t = t->to(at::kBFloat16);
  ops::MixInputs mixed = x.in;
  mixed.k = low.k;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const ops::MixOutputs got = ops::qk_norm_rope_mix(mixed);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  const ops::MixOutputs expected = ops::qk_norm_rope_mix(low);
  CHECK(got.q.scalar_type() == at::kBFloat16);
  CHECK(at::equal(got.q, expected.q));
  CHECK(at::equal(got.k, expected.k));
  CHECK(at::equal(got.v, expected.v));
}

}  // namespace satformer::tests::attention
