// The decoder block: its equations from its parts, on both paths and recomputed.
#include "satformer/nn/decoder_block.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "satformer/fused/recompute.h"

#include "tests/catch.h"

namespace satformer::nn {
namespace {

const at::TensorOptions kDoubles(at::kDouble);

DecoderBlock random_block(bool returns_values) {
  const AttentionOptions attention{
      .hidden_size = 16, .num_heads = 4, .num_kv_heads = 2, .qk_norm = true, .returns_values = returns_values};
  const auto mixer =
      std::make_shared<SelectiveMixerImpl>(SelectiveMixOptions{.hidden_size = 16, .num_kv_heads = 2}, kDoubles);
  DecoderBlock block(DecoderBlockOptions{attention, 24, 1e-6}, mixer, kDoubles);
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : block->parameters()) parameter.normal_(0, 0.5);
  return block;
}

DecoderBlockInput random_input() {
  const auto random = [](at::IntArrayRef sizes) { return at::randn(sizes, kDoubles).requires_grad_(true); };
  return {.hidden = {random({2, 5, 16}), random({2, 5, 16})}, .residual = {.first_values = random({2, 5, 2, 4})}};
}

LayerContext context_of(const DecoderBlockInput& input, bool fused) {
  return {.attention = make_attention_context(input.hidden.sum, {}, {}, {.head_dim = 4, .window_size = {}}),
          .layer = 1,
          .fused = fused};
}

at::Tensor normalized(const at::Tensor& x, const at::Tensor& weight) {
  return x / (x.square().mean(-1, true) + 1e-6).sqrt() * weight;
}

}  // namespace

TEST_CASE("a block adds attention, then its MLP", "[nn]") {
  DecoderBlock block = random_block(false);
  const DecoderBlockInput input = random_input();
  for (const bool fused : {true, false}) {
    INFO((fused ? "fused" : "plain"));
    const LayerContext context = context_of(input, fused);
    const AttentionOutput attention = block->attn->forward({{input.hidden, block->attn_norm}}, input.residual, context);
    const at::Tensor x = input.hidden.sum + input.hidden.pending + attention.hidden;
    const at::Tensor u = normalized(x, block->mlp_norm->weight);
    const at::Tensor gate = at::linear(u, block->mlp->gate_proj->weight);
    const at::Tensor up = at::linear(u, block->mlp->up_proj->weight);
    const at::Tensor expected = x + at::linear(gate * at::sigmoid(gate) * up, block->mlp->down_proj->weight);
    const DecoderBlockOutput output = block->forward(input, context);
    CHECK(at::allclose(output.hidden.value(), expected, 1e-12, 1e-12));
    CHECK_FALSE(output.values.defined());
  }
}

TEST_CASE("a recomputed block is the block, bit for bit", "[nn][checkpointing]") {
  for (const bool fused : {true, false}) {
    DecoderBlock block = random_block(true);
    const DecoderBlockInput input = random_input();
    const LayerContext context = context_of(input, fused);
    std::vector<at::Tensor> leaves = block->parameters();
    leaves.insert(leaves.end(), {input.hidden.sum, input.hidden.pending, input.residual.first_values});
    std::vector<std::vector<at::Tensor>> gradients;
    for (const bool again : {false, true}) {
      const DecoderBlockOutput out =
          again ? fused::recompute_layer(block, input, context) : block->forward(input, context);
      gradients.push_back(torch::autograd::grad({out.hidden.value().square().sum() + out.values.sin().sum()}, leaves));
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(at::equal(gradients[0][i], gradients[1][i]));
  }
}

}  // namespace satformer::nn
