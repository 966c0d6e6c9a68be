// causal_attention at sizes of training: [B, T, H, hd]. Beside its composite, which keeps all scores, LibTorch's own
// attention in blocks.
#include "csrc/ops/causal_attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>
#include <fmt/format.h>

#include "csrc/ops/causal_attention_reference.h"
#include "tests/microbench/comparison.h"

namespace satformer::microbench {
namespace {

Tensors by_operator(const Tensors& in) { return {std::get<0>(ops::causal_attention(in[0], in[1], in[2]))}; }

Tensors by_composite(const Tensors& in) { return {std::get<0>(ops::causal_attention_reference(in[0], in[1], in[2]))}; }

Tensors by_libtorch(const Tensors& in) {
  const at::Tensor out = at::scaled_dot_product_attention(in[0].transpose(1, 2), in[1].transpose(1, 2),
                                                          in[2].transpose(1, 2), {}, /*dropout_p=*/0,
                                                          /*is_causal=*/true);
  return {out.transpose(1, 2)};
}

bool compare_attention(std::int64_t B, std::int64_t T, std::int64_t H, std::int64_t hd) {
  const auto make = [=] { return Tensors{normal({B, T, H, hd}), normal({B, T, H, hd}), normal({B, T, H, hd})}; };
  const std::string sizes = fmt::format("{}x{}x{}x{}", B, T, H, hd);
  return compare({"causal_attention/" + sizes, make, by_operator, by_composite}) &&
         compare({"causal_attention_to_libtorch/" + sizes, make, by_operator, by_libtorch});
}

[[maybe_unused]] const bool kAdded =
    compare_attention(4, 256, 4, 64) && compare_attention(1, 1024, 4, 64) && compare_attention(1, 4096, 4, 64);

}  // namespace
}  // namespace satformer::microbench
