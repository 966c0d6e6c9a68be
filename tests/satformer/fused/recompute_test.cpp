// Activation recomputation by itself; its use in models is in tests/satformer/models/model_test.cpp.
#include "satformer/fused/recompute.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/catch.h"

namespace satformer {
namespace {

class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

}  // namespace

TEST_CASE("a checkpointed segment gives the same gradients", "[fused][checkpointing]") {
  const at::Tensor w = at::randn({4, 4}).requires_grad_(true), x = at::randn({3, 4}).requires_grad_(true);
  const at::Tensor frozen = at::randn({4}), unused = at::randn({2}).requires_grad_(true);
  int runs = 0;
  const fused::Segment segment = [&](const std::vector<at::Tensor>& inputs) {
    ++runs;
    const at::Tensor y = at::tanh(inputs[0].matmul(w) + inputs[1]);
    return std::vector<at::Tensor>{y, y.view({2, 6}), y * 0};
  };
  const auto plain = segment({x, frozen});
  const auto wanted = torch::autograd::grad({plain[0].sum() + plain[1].square().sum()}, {x, w});
  runs = 0;
  const auto outputs = fused::recompute(segment, {x, frozen}, {w, unused});
  CHECK(runs == 1);
  CHECK(at::equal(outputs[1], plain[1]));
  (outputs[0].sum() + outputs[1].square().sum()).backward();
  CHECK(runs == 2);
  CHECK(at::equal(x.grad(), wanted[0]));
  CHECK(at::equal(w.grad(), wanted[1]));
  CHECK_FALSE(unused.grad().defined());
}

TEST_CASE("parameters get gradients behind an input without", "[fused][checkpointing]") {
  const at::Tensor w = at::randn({4, 4}).requires_grad_(true), x = at::randn({3, 4});
  const fused::Segment segment = [&](const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{inputs[0].matmul(w)};
  };
  fused::recompute(segment, {x}, {w})[0].sum().backward();
  REQUIRE(w.grad().defined());
  CHECK(at::allclose(w.grad(), x.sum(0).unsqueeze(1).expand({4, 4})));
}

TEST_CASE("without gradients a segment is simply run", "[fused][checkpointing]") {
  const at::NoGradGuard no_grad;
  const at::Tensor w = at::randn({4, 4}).requires_grad_(true);
  const auto outputs = fused::recompute(
      [&](const std::vector<at::Tensor>& inputs) { return std::vector<at::Tensor>{inputs[0].matmul(w)}; },
      {at::randn({3, 4})}, {w});
  CHECK_FALSE(outputs[0].requires_grad());
}

TEST_CASE("the second run has the first one's autocast state", "[fused][checkpointing]") {
  const at::Tensor w = at::randn({16, 16}).requires_grad_(true), x = at::randn({8, 16}).requires_grad_(true);
  const fused::Segment segment = [&](const std::vector<at::Tensor>& inputs) {
    const at::Tensor y = inputs[0].matmul(w);
    return std::vector<at::Tensor>{at::tanh(y).matmul(w)};
  };
  const auto gradients = [&](bool checkpointed, bool backward_inside) {
    x.mutable_grad().reset(), w.mutable_grad().reset();
    at::Tensor loss;
    {
      const Autocast autocast;
      const at::Tensor y = checkpointed ? fused::recompute(segment, {x}, {w})[0] : segment({x})[0];
      CHECK(y.scalar_type() == at::kBFloat16);
      loss = y.to(at::kFloat).square().sum();
      if (backward_inside) loss.backward();
    }
    if (!backward_inside) loss.backward();
    return std::vector<at::Tensor>{x.grad(), w.grad()};
  };
  for (const bool backward_inside : {false, true}) {
    const auto wanted = gradients(false, backward_inside), found = gradients(true, backward_inside);
    REQUIRE(found[1].defined());
    CHECK(at::equal(found[0], wanted[0]));
    // w is used twice: its two bfloat16 gradients are added before or after the cast to float32.
    CHECK(at::allclose(found[1], wanted[1], 1e-2, 1e-1));
  }
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  CHECK(at::autocast::is_autocast_cache_enabled());
}

TEST_CASE("undefined inputs and outputs of a segment", "[fused][checkpointing]") {
  const at::Tensor w = at::randn({4, 4}).requires_grad_(true), x = at::randn({3, 4}).requires_grad_(true);
  const fused::Segment layer = [&](const std::vector<at::Tensor>& inputs) {
    CHECK_FALSE(inputs[1].defined());
    return std::vector<at::Tensor>{{}, at::tanh(inputs[0].matmul(w)), {}};
  };
  const auto plain = torch::autograd::grad({layer({x, {}})[1].square().sum()}, {x, w});
  const auto outputs = fused::recompute(layer, {x, {}}, {w});
  REQUIRE(outputs.size() == 3);
  CHECK_FALSE(outputs[0].defined());
  CHECK_FALSE(outputs[2].defined());
  const auto found = torch::autograd::grad({outputs[1].square().sum()}, {x, w});
  CHECK(at::equal(found[0], plain[0]));
  CHECK(at::equal(found[1], plain[1]));
}

TEST_CASE("second derivatives are refused", "[fused][checkpointing]") {
  const at::Tensor x = at::randn({3}).requires_grad_(true);
  const auto y = fused::recompute(
      [](const std::vector<at::Tensor>& inputs) { return std::vector<at::Tensor>{inputs[0] * inputs[0]}; }, {x}, {});
  CHECK_THROWS_WITH(torch::autograd::grad({y[0].sum()}, {x}, {}, true, /*create_graph=*/true),
                    Catch::Contains("second derivatives"));
}

}  // namespace satformer
