// Structs that name their members once: flat lists and back, absent tensors, empty lists, what autograd saves.
#include "csrc/ops/tensor_fields.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <type_traits>
#include <unordered_map>

#include "csrc/ops/dispatch.h"
#include "tests/catch.h"
#include "tests/csrc/operator_support.h"
#include "tests/csrc/struct_support.h"

namespace satformer::tests::tensor_fields_tests {
namespace {

struct Settings {
  double eps = 1e-5;
  std::int64_t steps = 3;

  static constexpr auto fields() { return std::tuple{&Settings::eps, &Settings::steps}; }
};

struct Inputs {
  at::Tensor x;
  at::Tensor weight = {};
  std::optional<at::Tensor> bias;
  std::vector<at::Tensor> sources;
  ops::Gate gate = ops::Gate::kRelu;
  Settings settings;
  bool twice = false;

  static constexpr auto fields() {
    using In = Inputs;
    return std::tuple{&In::x, ops::maybe(&In::weight), &In::bias, &In::sources, &In::gate, &In::settings, &In::twice};
  }
};

Inputs some() {
  Inputs in;
  in.x = at::ones({2});
  in.bias = at::ones({3});
  in.sources = {at::ones({4}), at::ones({5})};
  in.gate = ops::Gate::kTanh;
  in.settings = {0.5, 7};
  in.twice = true;
  return in;
}

std::vector<std::int64_t> sizes_of(const std::vector<at::Tensor>& list) {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& x : list) sizes.push_back(x.defined() ? x.numel() : -1);
  return sizes;
}

// An AutogradContext that only remembers.
struct Memory {
  std::unordered_map<std::string, c10::IValue> saved_data;
  std::vector<at::Tensor> saved;
  std::vector<bool> needed;  // by edge

  void save_for_backward(std::vector<at::Tensor> tensors) { saved = std::move(tensors); }
  std::vector<at::Tensor> get_saved_variables() const { return saved; }
  bool needs_input_grad(std::size_t edge) const { return needed.at(edge); }
};

}  // namespace

TEST_CASE("tensor_fields: the flat signature follows from the list of members", "[ops]") {
  using Flat = ops::FlatSignature<Settings(const Inputs&, std::array<bool, 2>)>::Type;
  using Expected = std::tuple<double, std::int64_t>(const at::Tensor&, const std::optional<at::Tensor>&,
                                                    const std::optional<at::Tensor>&, at::TensorList, std::string_view,
                                                    double, std::int64_t, bool, std::array<bool, 2>);
  STATIC_REQUIRE(std::is_same_v<Flat, Expected>);
  STATIC_REQUIRE(std::is_same_v<ops::FlatSignature<void(at::Tensor&, double)>::Type, void(at::Tensor&, double)>);
}

TEST_CASE("tensor_fields: flat lists give the struct back", "[ops]") {
  for (const bool empty : {false, true}) {
    Inputs in = some();
    if (empty) in.bias.reset(), in.sources.clear();
    if (empty) in.weight = at::ones({6});
    const auto flat = ops::Flat<Inputs>::to(in);
    const Inputs back = std::apply([](const auto&... x) { return ops::Flat<Inputs>::from("op", x...); }, flat);
    CHECK(back.x.is_same(in.x));
    CHECK(back.weight.is_same(in.weight));
    CHECK(back.bias.has_value() == !empty);
    CHECK(sizes_of(back.sources) == sizes_of(in.sources));
    CHECK(back.gate == ops::Gate::kTanh);
    CHECK(back.settings.eps == 0.5);
    CHECK(back.settings.steps == 7);
    CHECK(back.twice);
  }
  CHECK(message_of([] { ops::Flat<ops::Gate>::from("op", "gelu"); }) ==
        "op: gate must be one of relu, sigmoid, softmax, softmax_sigmoid, tanh, identity, got \"gelu\"");
}

TEST_CASE("tensor_fields: tensors that are there, in order, and changes of each", "[ops]") {
  const Inputs in = some();
  CHECK(sizes_of(ops::tensors_of(in)) == std::vector<std::int64_t>{2, 3, 4, 5});
  CHECK(ops::tensors_of(Inputs{}).empty());
  CHECK(ops::tensor_counts(in) == std::vector<std::int64_t>{1, 0, 1, 2});
  CHECK_FALSE(ops::requires_grad(in));
  const Inputs wide = to_double(in), leaf = leaves(in);
  for (const at::Tensor& x : ops::tensors_of(wide)) CHECK(x.scalar_type() == at::kDouble);
  CHECK_FALSE(wide.weight.defined());
  CHECK(wide.settings.steps == 7);
  CHECK(ops::requires_grad(leaf));
  CHECK(leaf.sources[1].is_leaf());
  CHECK_FALSE(in.x.requires_grad());
  CHECK(on(at::kCPU, in).x.is_same(in.x));
}

TEST_CASE("tensor_fields: what autograd saves comes back, without what was left out", "[ops]") {
  const Inputs in = some();
  Inputs kept = in;
  kept.x = at::Tensor();
  Memory memory;
  ops::save_fields(&memory, in, kept, {at::ones({9})});
  std::vector<at::Tensor> more;
  const auto back = ops::saved_fields<Inputs>(&memory, &more);
  CHECK_FALSE(back.x.defined());
  CHECK_FALSE(back.weight.defined());
  CHECK(back.bias->is_same(*in.bias));
  CHECK(sizes_of(back.sources) == std::vector<std::int64_t>{4, 5});
  CHECK(back.gate == ops::Gate::kTanh);
  CHECK(back.settings.eps == 0.5);
  CHECK(back.settings.steps == 7);
  CHECK(back.twice);
  CHECK(sizes_of(more) == std::vector<std::int64_t>{9});

  memory.needed = {false, true, false, true};  // of x, bias and two sources
  CHECK(ops::wanted(&memory, &Inputs::x, &Inputs::weight, &Inputs::bias, &Inputs::sources) ==
        std::array<bool, 4>{false, false, true, true});
}

TEST_CASE("tensor_fields: one gradient for each tensor that was there", "[ops]") {
  Memory memory;
  ops::save_fields(&memory, some(), some());
  Inputs gradients;
  gradients.x = at::zeros({2});
  CHECK(sizes_of(ops::gradients_for(&memory, gradients)) == std::vector<std::int64_t>{-1, 2, -1, -1, -1});
  gradients.sources = {at::zeros({4}), at::zeros({5})};
  gradients.weight = at::zeros({6});  // was absent
  CHECK(sizes_of(ops::gradients_for(&memory, gradients)) == std::vector<std::int64_t>{-1, 2, -1, 4, 5});
}

}  // namespace satformer::tests::tensor_fields_tests
