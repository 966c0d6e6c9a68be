// The packed products and their recomputing backward, against the same formulas left to autograd.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "satformer/fused/norm_linear.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using fused::LinearParameters;
using fused::PackedWeight;

std::vector<LinearParameters> make_layers(std::int64_t in, const std::vector<std::int64_t>& out, bool bias,
                                          at::ScalarType dtype) {
  std::vector<LinearParameters> layers;
  for (std::size_t i = 0; i < out.size(); ++i) {
    LinearParameters& layer = layers.emplace_back();
    layer.weight = at::randn({out[i], in}, dtype).requires_grad_(true);
    // The second layer never has a bias: a pack may mix both kinds.
    if (bias && i != 1) layer.bias = at::randn({out[i]}, dtype).requires_grad_(true);
  }
  return layers;
}

at::Tensor separate_products(const at::Tensor& x, const std::vector<LinearParameters>& layers) {
  std::vector<at::Tensor> parts;
  for (const LinearParameters& layer : layers) parts.push_back(at::linear(x, layer.weight, layer.bias));
  return at::cat(parts, -1);
}

at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * (x.square().mean(-1, true) + eps).rsqrt() * weight;
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

void check_same(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& wanted, double tolerance) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("tensor " << i);
    REQUIRE(found[i].sizes() == wanted[i].sizes());
    CHECK(found[i].scalar_type() == wanted[i].scalar_type());
    CHECK(difference(found[i], wanted[i]) < tolerance);
  }
}

}  // namespace

TEST_CASE("packed weights are the layers' own memory", "[fused]") {
  auto layers = make_layers(5, {3, 4, 1}, true, at::kFloat);
  PackedWeight packed(layers);
  const at::Tensor expected = at::cat({layers[0].weight, layers[1].weight, layers[2].weight}).detach();
  const at::Tensor whole = packed.weight(at::kFloat);
  CHECK(at::equal(whole, expected));
  CHECK(!whole.requires_grad());
  CHECK(layers[1].weight.requires_grad());
  CHECK(layers[1].weight.is_leaf());
  CHECK(whole.data_ptr() == layers[0].weight.data_ptr());
  {
    const at::NoGradGuard no_grad;
    layers[2].weight.fill_(7);
  }
  CHECK(packed.weight(at::kFloat)[7].eq(7).all().item<bool>());
  CHECK(packed.weight(at::kFloat).data_ptr() == whole.data_ptr());
  CHECK(packed.bias(at::kFloat).slice(0, 3, 7).eq(0).all().item<bool>());
  CHECK(packed.parameters().size() == 5);

  // Another dtype: cast once, again only after a change.
  const at::Tensor cast = packed.weight(at::kBFloat16);
  CHECK(packed.weight(at::kBFloat16).data_ptr() == cast.data_ptr());
  {
    const at::NoGradGuard no_grad;
    layers[0].weight.fill_(3);
  }
  CHECK(packed.weight(at::kBFloat16)[0].eq(3).all().item<bool>());

  // After a move every parameter has its own memory; the next use packs them again, values unchanged.
  for (const LinearParameters& layer : layers) {
    layer.weight.set_data(layer.weight.detach().to(at::kDouble));
    if (layer.bias.defined()) layer.bias.set_data(layer.bias.detach().to(at::kDouble));
  }
  const at::Tensor moved = packed.weight(at::kDouble);
  CHECK(moved.data_ptr() == layers[0].weight.data_ptr());
  CHECK(moved[7].eq(7).all().item<bool>());
  CHECK(moved[0].eq(3).all().item<bool>());
}

TEST_CASE("norm_linear is norm and products", "[fused]") {
  for (const bool bias : {false, true}) {
    for (const bool pending : {false, true}) {
      for (const std::int64_t T : {0, 1, 7}) {
        INFO("bias " << bias << ", pending " << pending << ", T " << T);
        const auto layers = make_layers(6, {4, 2, 3}, bias, at::kDouble);
        PackedWeight packed(layers);
        const fused::Norm norm{at::randn({6}, at::kDouble).requires_grad_(true), 0.01};
        const at::Tensor x = at::randn({2, T, 6}, at::kDouble).requires_grad_(true);
        const at::Tensor added = at::randn({2, T, 6}, at::kDouble).requires_grad_(true);
        const fused::NormLinearOutput found = fused::norm_linear({x, pending ? added : at::Tensor()}, norm, packed);
        const at::Tensor sum = pending ? x + added : x;
        const at::Tensor y = separate_products(plain_norm(sum, norm.weight, 0.01), layers);
        check_same({found.sum, found.y}, {sum, y}, 1e-12);
        const at::Tensor g1 = at::randn_like(sum), g2 = at::randn_like(y);
        std::vector<at::Tensor> inputs{x, norm.weight};
        if (pending) inputs.push_back(added);
        for (const at::Tensor& parameter : packed.parameters()) inputs.push_back(parameter);
        check_same(torch::autograd::grad({(found.sum * g1).sum() + (found.y * g2).sum()}, inputs),
                   torch::autograd::grad({(sum * g1).sum() + (y * g2).sum()}, inputs), 1e-11);
      }
    }
  }
}

TEST_CASE("swiglu_linear and packed_linear are their formulas", "[fused]") {
  for (const std::int64_t T : {0, 1, 5}) {
    const auto layers = make_layers(3, {4}, false, at::kDouble);
    PackedWeight packed(layers);
    const at::Tensor x = at::randn({2, T, 6}, at::kDouble).requires_grad_(true);
    const at::Tensor gate = x.slice(-1, 0, 3), up = x.slice(-1, 3);
    const at::Tensor active = gate * at::sigmoid(gate) * up;
    const at::Tensor g = at::randn({2, T, 4}, at::kDouble);
    const at::Tensor found = fused::swiglu_linear(x, packed), wanted = at::linear(active, layers[0].weight);
    check_same({found}, {wanted}, 1e-12);
    const std::vector<at::Tensor> inputs{x, layers[0].weight};
    const auto expected = torch::autograd::grad({(wanted * g).sum()}, inputs);  // first: the other overwrites x
    check_same(torch::autograd::grad({(found * g).sum()}, inputs), expected, 1e-11);
    const at::Tensor narrow = at::randn({2, T, 3}, at::kDouble).requires_grad_(true);
    const at::Tensor plain = fused::packed_linear(narrow, packed), reference = at::linear(narrow, layers[0].weight);
    check_same({plain}, {reference}, 1e-12);
    const std::vector<at::Tensor> others{narrow, layers[0].weight};
    check_same(torch::autograd::grad({(plain * g).sum()}, others),
               torch::autograd::grad({(reference * g).sum()}, others), 1e-11);
  }
}

}  // namespace satformer
