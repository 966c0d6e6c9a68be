// The gradients' global norm and its clipping.
#include "satformer/optim/clip.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer::optim;

}  // namespace

TEST_CASE("the global norm is that of all tensors as one vector", "[optim]") {
  CHECK(global_norm({}) == 0.0);
  CHECK(global_norm({at::zeros({3}), at::zeros({0})}) == 0.0);
  CHECK(global_norm({at::full({1}, 3.0), at::full({1, 1}, 4.0)}) == 5.0);
  // The order and the shapes do not matter.
  CHECK(global_norm({at::full({2, 8}, 0.5), at::full({9}, 2.0)}) == Approx(std::sqrt(16 * 0.25 + 9 * 4.0)));
}

TEST_CASE("the global norm is summed in float64", "[optim]") {
  // In float32 the squares overflow, and the small ones vanish beside the large.
  CHECK(global_norm({at::full({4}, 1e30f)}) == Approx(2e30));
  const double norm = global_norm({at::full({1}, 1e4f), at::full({1 << 16}, 1e-1f)});
  CHECK(norm == Approx(std::sqrt(1e8 + 65536e-2)).epsilon(1e-9));
  CHECK(global_norm({at::full({4}, 0.5, at::kBFloat16)}) == 1.0);
}

TEST_CASE("the global norm of entries that are not finite is not finite", "[optim]") {
  const at::Tensor good = at::full({3}, 1.0);
  CHECK(std::isinf(global_norm({good, at::full({2}, -INFINITY)})));
  CHECK(std::isnan(global_norm({good, at::full({1}, NAN)})));
}

TEST_CASE("gradients are scaled down to the norm, never up", "[optim]") {
  CHECK(clip_factor(0.5, 1.0) == 1.0);
  CHECK(clip_factor(0.0, 1.0) == 1.0);
  CHECK(clip_factor(4.0, 1.0) == 1.0 / (4.0 + 1e-6));
  CHECK(clip_factor(1.0, 1.0) == 1.0 / (1.0 + 1e-6));  // as in PyTorch's clip_grad_norm_
  CHECK(clip_factor(10.0, 2.5) == Approx(0.25));
}

TEST_CASE("a largest norm of 0 switches clipping off", "[optim]") {
  CHECK(clip_factor(1e30, 0.0) == 1.0);
  CHECK(clip_factor(std::numeric_limits<double>::infinity(), 0.0) == 1.0);
  CHECK(clip_factor(std::numeric_limits<double>::infinity(), 1.0) == 0.0);
}
