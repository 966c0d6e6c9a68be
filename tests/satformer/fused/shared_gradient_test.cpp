#include "satformer/fused/shared_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/autograd.h>

#include "satformer/fused/depth_sum.h"
#include "satformer/fused/recompute.h"
#include "tests/catch.h"

namespace satformer::fused {
namespace {

using torch::autograd::variable_list;

constexpr std::int64_t kSources = 4;

// A small DenseFormer: every layer reads all earlier outputs. `shared`: by way of the buffers.
struct Depth {
  explicit Depth(at::ScalarType dtype) {
    const at::TensorOptions options(dtype);
    x = at::randn({2, 3, 6}, options).requires_grad_();
    for (std::int64_t l = 1; l <= kSources; ++l) {
      weights.push_back(at::randn({1, l}, at::kDouble).requires_grad_());
      scales.push_back(at::randn({6}, options).requires_grad_());
    }
  }

  at::Tensor run(bool shared, bool checkpointed) const {
    const auto remember = [&](const at::Tensor& y) { return shared ? fan_out(y) : y; };
    std::vector<at::Tensor> outputs{remember(x)};
    at::Tensor y = x;
    for (std::size_t l = 0; l < weights.size(); ++l) {
      const Segment layer = [&, l](const std::vector<at::Tensor>& sources) {
        DepthSum sum;
        sum.sources = sources;
        sum.weights = weights[l];
        return sum_over_depth(sum);
      };
      y = (checkpointed ? recompute(layer, outputs, {weights[l]}) : layer(outputs)).front() * scales[l];
      outputs.push_back(remember(y * y));
    }
    return (y.to(at::kDouble) * y.to(at::kDouble)).sum();
  }

  variable_list leaves() const {
    variable_list all{x};
    all.insert(all.end(), weights.begin(), weights.end());
    all.insert(all.end(), scales.begin(), scales.end());
    return all;
  }

  at::Tensor x;
  variable_list weights, scales;
};

double largest_difference(const variable_list& a, const variable_list& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const at::Tensor scale = b[i].abs().max() + 1e-30;
    worst = std::max(worst, ((a[i] - b[i]).abs().max() / scale).item<double>());
  }
  return worst;
}

}  // namespace

TEST_CASE("gradients through shared buffers are those of autograd", "[fused]") {
  const Depth depth(at::kDouble);
  const variable_list expected = torch::autograd::grad({depth.run(false, false)}, depth.leaves());
  for (const bool checkpointed : {false, true}) {
    const variable_list got = torch::autograd::grad({depth.run(true, checkpointed)}, depth.leaves());
    CHECK(largest_difference(got, expected) < 1e-13);
  }
}

TEST_CASE("a shared buffer is empty after every backward pass", "[fused]") {
  const Depth depth(at::kDouble);
  const at::Tensor loss = depth.run(true, false);
  const variable_list first = torch::autograd::grad({loss}, depth.leaves(), {}, /*retain_graph=*/true);
  // Reaches the later layers alone: what the earlier sources would get is not to stay for the next pass.
  torch::autograd::grad({loss}, {depth.weights.back()}, {}, /*retain_graph=*/true);
  const variable_list second = torch::autograd::grad({loss}, depth.leaves());
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i], second[i]));
}

TEST_CASE("readers that know no buffer get theirs by autograd", "[fused]") {
  const at::Tensor x = at::randn({3, 4}, at::kDouble).requires_grad_();
  const at::Tensor shared = fan_out(x);
  CHECK(shared_gradient(shared));
  CHECK_FALSE(shared_gradient(x));
  CHECK_FALSE(shared_gradient(shared.detach()));
  CHECK_FALSE(shared_gradient(fan_out(x.detach())));
  // In this order the gradients of the square are added up first.
  const at::Tensor linear = 3 * shared.sum(), square = (shared * shared).sum();
  const at::Tensor got = torch::autograd::grad({square + linear}, {x})[0];
  CHECK(at::equal(got, 2 * x.detach() + 3));
  {
    const at::NoGradGuard no_grad;
    CHECK_FALSE(shared_gradient(fan_out(x)));
  }
  CHECK_FALSE(shared_gradient(at::Tensor()));
}

}  // namespace satformer::fused
