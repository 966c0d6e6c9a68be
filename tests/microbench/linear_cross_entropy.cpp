// linear_cross_entropy at sizes of training: tokens, hidden size, vocabulary. The composite holds all logits at once.
#include "csrc/ops/linear_cross_entropy.h"

#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include "csrc/ops/linear_cross_entropy_reference.h"
#include "tests/microbench/comparison.h"

namespace satformer::microbench {
namespace {

constexpr std::int64_t kIgnored = -100;

bool compare_loss(std::int64_t N, std::int64_t d, std::int64_t V) {
  const double scale = 1 / static_cast<double>(N);
  return compare(
      {fmt::format("linear_cross_entropy/{}x{}x{}/float32", N, d, V),
       [=] { return Tensors{normal({N, d}), normal({V, d}), at::randint(V, {N}, at::kLong)}; },
       [=](const Tensors& in) { return Tensors{ops::linear_cross_entropy(in[0], in[1], in[2], kIgnored, scale)}; },
       [=](const Tensors& in) {
         return Tensors{ops::linear_cross_entropy_reference(in[0], in[1], in[2], kIgnored, scale)};
       },
       /*constants=*/1});
}

[[maybe_unused]] const bool kAdded = compare_loss(1024, 256, 4096) && compare_loss(2048, 256, 32000);

}  // namespace
}  // namespace satformer::microbench
