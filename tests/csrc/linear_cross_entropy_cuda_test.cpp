// linear_cross_entropy on a GPU: what the CPU's kernel is held to.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/zeros_like.h>

#include <array>

#include "csrc/ops/linear_cross_entropy.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/linear_cross_entropy_support.h"

namespace satformer::tests::cross_entropy_tests {
namespace {

LossInputs on_cuda(const LossInputs& in) { return {in.hidden.cuda(), in.weight.cuda(), in.targets.cuda()}; }

}  // namespace

TEST_CASE("linear_cross_entropy_CUDA: loss and gradients for every dtype, size and layout", "[ops][cuda]") {
  if (!has_cuda()) return;
  std::uint64_t seed = 50;
  for (const auto dtype : kCudaDtypes) {
    for (const auto& [N, d, V] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                          {1, 3, 2},
                                                                          {5, 7, 11},
                                                                          {8, 16, 32},
                                                                          {37, 16, 33},
                                                                          {0, 4, 5},
                                                                          {300, 8, 1000},
                                                                          {700, 4, 4099},
                                                                          {20, 64, 32003},
                                                                          {20001, 2, 17}}) {  // the last: two chunks
      check(make_loss_inputs(N, d, V, dtype, seed, kRowLayouts[seed % 4]), seed % 2 ? 1 : 0.125, at::kCUDA);
      ++seed;
    }
  }
}

TEST_CASE("linear_cross_entropy_CUDA: float32 gradients of a bfloat16 weight, ignored targets", "[ops][cuda]") {
  if (!has_cuda()) return;
  const LossInputs in = on_cuda(make_loss_inputs(40, 8, 50, at::kBFloat16, 5));
  const auto [loss, grad_hidden, grad_weight] = ops::linear_cross_entropy_with_gradients(
      in.hidden, in.weight, in.targets, kIgnored, 1, {false, true}, at::kFloat);
  CHECK_FALSE(grad_hidden.defined());
  REQUIRE(grad_weight.scalar_type() == at::kFloat);
  const auto whole = ops::linear_cross_entropy_with_gradients(in.hidden, in.weight, in.targets, kIgnored);
  CHECK(at::equal(std::get<2>(whole), grad_weight.to(at::kBFloat16)));

  const auto [none, to_hidden, to_weight] =
      ops::linear_cross_entropy_with_gradients(in.hidden, in.weight, at::full_like(in.targets, 77), 77);
  CHECK(none.item<float>() == 0);
  CHECK(at::equal(to_hidden, at::zeros_like(to_hidden)));
  CHECK(at::equal(to_weight, at::zeros_like(to_weight)));
}

TEST_CASE("linear_cross_entropy_CUDA: a target out of range makes the loss and its row NaN", "[ops][cuda]") {
  if (!has_cuda()) return;
  for (const std::int64_t wrong : {-1, 6, 1 << 30}) {
    const LossInputs in = on_cuda(make_loss_inputs(10, 4, 6, at::kFloat, 6));
    in.targets[1].fill_(wrong);
    const auto [loss, grad_hidden, grad_weight] =
        ops::linear_cross_entropy_with_gradients(in.hidden, in.weight, in.targets, kIgnored);
    CHECK(at::isnan(loss).item<bool>());
    CHECK(at::isnan(grad_hidden[1]).all().item<bool>());
    CHECK_FALSE(at::isnan(grad_hidden[0]).any().item<bool>());
  }
}

TEST_CASE("linear_cross_entropy_CUDA: devices that it refuses", "[ops][cuda]") {
  if (!has_cuda()) return;
  const LossInputs cpu = make_loss_inputs(9, 4, 6, at::kFloat, 1), cuda = on_cuda(cpu);
  CHECK(message_of([&] { ops::linear_cross_entropy(cpu.hidden, cuda.weight, cuda.targets); }) ==
        "linear_cross_entropy: weight must be on cpu like hidden, got cuda:0");
  CHECK(message_of([&] { ops::linear_cross_entropy(cuda.hidden, cuda.weight, cpu.targets); }) ==
        "linear_cross_entropy: targets must be on cuda:0 like hidden, got cpu");
}

}  // namespace satformer::tests::cross_entropy_tests
