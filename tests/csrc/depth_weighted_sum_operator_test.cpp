// depth_weighted_sum as an operator: registration, argument errors, masks, accumulation, meta tensors, threads.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/depth_weighted_sum.h"
#include "tests/catch.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/depth_weighted_sum_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {
namespace {

DepthCase everything() {
  DepthCase c;
  c.T = 5, c.S = 4, c.C = 3, c.d = 24;
  c.per_token = c.base = c.source_norms = c.output_norms = true;
  return c;
}

c10::OperatorHandle depth_operator(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("satformer::" + name).c_str(), "");
}

}  // namespace

TEST_CASE("depth_weighted_sum: schemas and dispatch keys are registered", "[ops]") {
  CHECK(c10::toString(depth_operator("depth_weighted_sum").schema()) ==
        "satformer::depth_weighted_sum(Tensor[] sources, Tensor weights, Tensor? base, Tensor[] source_norm_weights, "
        "Tensor[] source_inverse_rms, Tensor[] output_norm_weights, float output_norm_eps) -> Tensor[]");
  CHECK(c10::toString(depth_operator("inverse_rms").schema()) ==
        "satformer::inverse_rms(Tensor x, float eps) -> Tensor");
  for (const char* name : {"depth_weighted_sum", "depth_weighted_sum_backward", "depth_weighted_sum_backward_",
                           "inverse_rms", "inverse_rms_backward"}) {
    INFO(name);
    for (const c10::DispatchKey key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}) {
      CHECK(depth_operator(name).hasKernelForDispatchKey(key));
    }
  }
}

TEST_CASE("depth_weighted_sum: wrong arguments are named with what was expected and what was got", "[ops]") {
  const auto error = [](const std::function<void(ops::DepthSum&)>& spoil) {
    DepthCase c = everything();
    ops::DepthSum sum = make_depth_sum(c, 1);
    spoil(sum);
    return message_of([&] { ops::depth_weighted_sum(sum); });
  };
  const std::string op = "depth_weighted_sum: ";
  CHECK(error([](ops::DepthSum&) {}) == "");
  CHECK(error([](ops::DepthSum& s) { s.sources.clear(); }) == op + "sources must hold at least 1 tensor, got 0");
  CHECK(error([](ops::DepthSum& s) { s.sources[0] = s.sources[0][0]; }) ==
        op + "sources[0] must have the 3 dimensions [B, T, d], got [5, 24]");
  CHECK(error([](ops::DepthSum& s) { s.sources[0] = s.sources[0].to(at::kLong); }) ==
        op + "sources[0] must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(error([](ops::DepthSum& s) { s.sources[2] = s.sources[2].slice(2, 1); }) ==
        op + "sources[2] must be [2, 5, 24], got [2, 5, 23]");
  CHECK(error([](ops::DepthSum& s) { s.sources[3] = s.sources[3].to(at::kHalf); }) ==
        op + "sources[3] must be Float, got Half");
  CHECK(error([](ops::DepthSum& s) { s.sources[1] = at::randn({2, 24, 5}).transpose(1, 2); }) ==
        op + "sources[1] must be contiguous in its last dimension, got strides [120, 1, 5]; call contiguous() on it "
             "first");
  CHECK(error([](ops::DepthSum& s) { s.weights = s.weights[0]; }) ==
        op + "weights must be [C, S] or [B, T, C, S], got [5, 3, 4]");
  CHECK(error([](ops::DepthSum& s) { s.weights = s.weights.slice(3, 1); }) ==
        op + "weights must be [2, 5, 3, 4], got [2, 5, 3, 3]");
  CHECK(error([](ops::DepthSum& s) { s.weights = s.weights.slice(2, 0, 0); }) ==
        op + "weights must have at least 1 way, got [2, 5, 0, 4]");
  CHECK(error([](ops::DepthSum& s) { s.base = s.base->slice(1, 1); }) ==
        op + "base must be [2, 5, 24], got [2, 4, 24]");
  CHECK(error([](ops::DepthSum& s) { s.source_norm_weights.pop_back(); }) ==
        op + "source_norm_weights must hold 4 tensors, one for each source, got 3");
  CHECK(error([](ops::DepthSum& s) { s.source_inverse_rms.clear(); }) ==
        op + "source_inverse_rms must hold 4 tensors, one for each source, got 0");
  CHECK(error([](ops::DepthSum& s) { s.source_norm_weights[1] = at::ones({25}); }) ==
        op + "source_norm_weights[1] must be [24], got [25]");
  CHECK(error([](ops::DepthSum& s) { s.source_inverse_rms[0] = s.source_inverse_rms[0].to(at::kDouble); }) ==
        op + "source_inverse_rms[0] must be Float, got Double");
  CHECK(error([](ops::DepthSum& s) { s.output_norm_weights.pop_back(); }) ==
        op + "output_norm_weights must hold 3 tensors, one for each way, got 2");
  CHECK(error([](ops::DepthSum& s) { s.output_norm_weights[2] = at::ones({24}).to(at::kLong); }) ==
        op + "output_norm_weights[2] must be float32, bfloat16, float16 or float64, got Long");
  CHECK(error([](ops::DepthSum& s) { s.base = at::empty({2, 5, 24}, at::TensorOptions(at::kMeta)); }) ==
        op + "base must be on cpu like sources[0], got meta");
  CHECK(error([](ops::DepthSum& s) { s.output_norm_eps = -1; }) == op + "output_norm_eps must not be negative, got -1");
  const ops::DepthSum sum = make_depth_sum(everything(), 1);
  CHECK(message_of([&] { ops::depth_weighted_sum_backward({}, sum); }) ==
        "depth_weighted_sum_backward: grads must hold 3 tensors, one for each way, got 0");
  std::vector<at::Tensor> few(3);
  CHECK(message_of([&] { ops::depth_weighted_sum_backward_(few, make_depth_grads(everything(), 1), sum); }) ==
        "depth_weighted_sum_backward_: grad_sources must hold 4 tensors, one for each source, got 3");
  CHECK(message_of([] { ops::inverse_rms(at::ones({2}).to(at::kLong), 1e-6); }) ==
        "inverse_rms: x must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(message_of([] { ops::inverse_rms(at::ones({2}), -1e-6); }) ==
        "inverse_rms: eps must not be negative, got -1e-06");
}

TEST_CASE("depth_weighted_sum_backward: only what the mask asks for, the same numbers", "[ops]") {
  const ops::DepthSum sum = make_depth_sum(everything(), 2);
  const std::vector<at::Tensor> grads = make_depth_grads(everything(), 2);
  const ops::DepthSumGradients all = ops::depth_weighted_sum_backward(grads, sum);
  for (std::size_t wanted = 0; wanted < 6; ++wanted) {
    ops::DepthSumMask mask{};
    mask[wanted] = true;
    const ops::DepthSumGradients one = ops::depth_weighted_sum_backward(grads, sum, mask);
    const auto check_list = [](const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected,
                               bool there) {
      REQUIRE(got.size() == (there ? expected.size() : 0));
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(at::equal(got[i], expected[i]));
    };
    check_list(one.sources, all.sources, wanted == 0);
    CHECK(one.weights.defined() == (wanted == 1));
    CHECK(one.base.defined() == (wanted == 2));
    if (wanted == 1) CHECK(at::equal(one.weights, all.weights));
    if (wanted == 2) CHECK(at::equal(one.base, all.base));
    check_list(one.source_norm_weights, all.source_norm_weights, wanted == 3);
    check_list(one.source_inverse_rms, all.source_inverse_rms, wanted == 4);
    check_list(one.output_norm_weights, all.output_norm_weights, wanted == 5);
  }
  ops::DepthSum plain = sum;
  plain.base.reset();
  plain.output_norm_weights.clear();
  const ops::DepthSumGradients fewer = ops::depth_weighted_sum_backward(grads, plain);
  CHECK_FALSE(fewer.base.defined());
  CHECK(fewer.output_norm_weights.empty());
}

TEST_CASE("depth_weighted_sum_backward_: adds the sources' gradients into strided buffers, and nothing else", "[ops]") {
  for (const bool norms : {false, true}) {
    for (const at::ScalarType dtype : kValueDtypes) {
      DepthCase c = everything();
      c.source_norms = norms, c.dtype = dtype;
      const ops::DepthSum sum = make_depth_sum(c, 3);
      const std::vector<at::Tensor> grads = make_depth_grads(c, 3);
      const ops::DepthSumGradients expected = ops::depth_weighted_sum_backward(grads, sum);
      std::vector<at::Tensor> wide, buffers;
      for (std::int64_t j = 0; j < c.S; ++j) {
        wide.push_back(at::ones({c.B, c.T, c.d + 2}).to(dtype));
        buffers.push_back(wide.back().slice(2, 1, c.d + 1));
      }
      const auto version = buffers[0]._version();
      const ops::DepthSumGradients got = ops::depth_weighted_sum_backward_(buffers, grads, sum);
      CHECK(got.sources.empty());
      CHECK(buffers[0]._version() > version);
      CHECK(at::equal(got.weights, expected.weights));
      for (std::int64_t j = 0; j < c.S; ++j) {
        // The kernel rounds the sum once, the expectation twice; 2^-7 is bfloat16's unit at 1.
        const double unit = dtype == at::kBFloat16 ? 0x1p-7 : dtype == at::kHalf ? 0x1p-10 : 0x1p-22;
        CHECK(relative_difference(buffers[j].to(at::kDouble), expected.sources[j].to(at::kDouble) + 1) <= unit);
        CHECK(at::equal(wide[j].select(2, 0), at::ones({c.B, c.T}).to(dtype)));
        CHECK(at::equal(wide[j].select(2, c.d + 1), at::ones({c.B, c.T}).to(dtype)));
      }
    }
  }
}

TEST_CASE("depth_weighted_sum_backward_: buffers that share memory are refused before anything is written", "[ops]") {
  const ops::DepthSum sum = make_depth_sum(everything(), 3);
  const std::vector<at::Tensor> grads = make_depth_grads(everything(), 3);
  const at::Tensor spare = at::ones({4, 2, 5, 24});
  const auto error = [&](const at::Tensor& shared) {
    std::vector<at::Tensor> buffers{spare[0], spare[1], spare[2], shared};
    return message_of([&] { ops::depth_weighted_sum_backward_(buffers, grads, sum); });
  };
  const std::string op = "depth_weighted_sum_backward_: grad_sources[3] is added to and must not share memory with ";
  CHECK(error(spare[1]) == op + "grad_sources[1]; clone one of them");
  CHECK(error(spare.view(-1).slice(0, 100, 340).view({2, 5, 24})) == op + "grad_sources[0]; clone one of them");
  CHECK(error(grads[2]) == op + "grads[2]; clone one of them");
  CHECK(error(sum.sources[0]) == op + "sources[0]; clone one of them");
  CHECK_THAT(error(at::ones({2, 1, 24}).expand({2, 5, 24})), Catch::Contains("refers to a single memory location"));
  CHECK(at::equal(spare, at::ones_like(spare)));
  CHECK(error(spare[3]) == "");
}

TEST_CASE("depth_weighted_sum_backward_: raises the versions under autograd and in inference mode", "[ops]") {
  const ops::DepthSum sum = make_depth_sum(everything(), 3);
  const std::vector<at::Tensor> grads = make_depth_grads(everything(), 3);
  std::vector<at::Tensor> buffers;
  for (const at::Tensor& x : sum.sources) buffers.push_back(at::zeros(x.sizes()));
  for (const bool inference : {false, true}) {
    const auto version = buffers[3]._version();
    const c10::InferenceMode mode(inference);
    ops::depth_weighted_sum_backward_(buffers, grads, sum);
    CHECK(buffers[3]._version() == version + 1);
  }
}

TEST_CASE("depth_weighted_sum: any number of threads gives the same bits", "[ops]") {
  DepthCase c = everything();
  c.B = 3, c.T = 150;
  for (const bool per_token : {false, true}) {
    c.per_token = per_token;
    const ops::DepthSum sum = make_depth_sum(c, 4);
    const std::vector<at::Tensor> grads = make_depth_grads(c, 4);
    const auto runs = with_threads([&] {
      std::vector<at::Tensor> result = ops::depth_weighted_sum(sum);
      const std::vector<at::Tensor> gradients = ops::tensors_of(ops::depth_weighted_sum_backward(grads, sum));
      result.insert(result.end(), gradients.begin(), gradients.end());
      return result;
    });
    for (std::size_t i = 0; i < runs[0].size(); ++i) CHECK(at::equal(runs[0][i], runs[1][i]));
  }
}

TEST_CASE("depth_weighted_sum: gradients of expanded and of missing incoming gradients", "[ops]") {
  DepthCase c;
  c.C = 2;
  const ops::DepthSum x = leaves(make_depth_sum(c, 5));
  const std::vector<at::Tensor> out = ops::depth_weighted_sum(x);
  // sum() hands an expanded gradient to one way, none to the other.
  const auto got = torch::autograd::grad({out[0].sum()}, x.sources, {}, /*retain_graph=*/true);
  const std::vector<at::Tensor> grads{at::ones({c.B, c.T, c.d}), at::zeros({c.B, c.T, c.d})};
  const ops::DepthSumGradients expected = ops::depth_weighted_sum_backward(grads, make_depth_sum(c, 5));
  for (std::size_t j = 0; j < got.size(); ++j) CHECK(at::equal(got[j], expected.sources[j]));
  // Only one source requires grad.
  ops::DepthSum one = make_depth_sum(c, 5);
  one.sources[1] = leaf(one.sources[1]);
  const auto alone = torch::autograd::grad(ops::depth_weighted_sum(one), {one.sources[1]}, grads);
  CHECK(at::equal(alone[0], expected.sources[1]));
}

TEST_CASE("depth_weighted_sum: a second derivative is refused with a hint", "[ops]") {
  DepthCase c;
  const ops::DepthSum x = leaves(make_depth_sum(c, 6));
  const auto first = [&] {
    torch::autograd::grad(ops::depth_weighted_sum(x), x.sources, {leaf(make_depth_grads(c, 6)[0])}, true,
                          /*create_graph=*/true);
  };
  CHECK(
      message_of(first) ==
      "depth_weighted_sum_backward: has no derivative of its own; for second derivatives use the composite reference");
}

TEST_CASE("depth_weighted_sum: meta tensors give shapes, dtypes and the same errors", "[ops]") {
  const auto meta = [](at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype));
  };
  ops::DepthSum sum;
  sum.sources = {meta({2, 5, 8}, at::kBFloat16), meta({2, 5, 8}, at::kBFloat16)};
  sum.weights = meta({2, 5, 3, 2}, at::kFloat);
  sum.source_norm_weights = {meta({8}, at::kFloat), meta({8}, at::kBFloat16)};
  sum.source_inverse_rms = {ops::inverse_rms(sum.sources[0], 1e-6), ops::inverse_rms(sum.sources[1], 1e-6)};
  const std::vector<at::Tensor> out = ops::depth_weighted_sum(sum);
  REQUIRE(out.size() == 3);
  CHECK(out[2].sizes() == at::IntArrayRef({2, 5, 8}));
  CHECK(out[2].scalar_type() == at::kBFloat16);
  CHECK(out[2].is_meta());
  const ops::DepthSumGradients gradients = ops::depth_weighted_sum_backward(out, sum);
  CHECK(gradients.sources.size() == 2);
  CHECK(gradients.weights.sizes() == sum.weights.sizes());
  CHECK(gradients.source_norm_weights[1].scalar_type() == at::kBFloat16);
  CHECK(gradients.source_inverse_rms[0].sizes() == at::IntArrayRef({2, 5}));
  sum.weights = meta({2, 5, 3, 3}, at::kFloat);
  CHECK(message_of([&] { ops::depth_weighted_sum(sum); }) ==
        "depth_weighted_sum: weights must be [2, 5, 3, 2], got [2, 5, 3, 3]");
}

}  // namespace satformer::tests
