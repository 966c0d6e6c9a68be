// Which parameters decay, and how the groups are described.
#include "satformer/optim/parameter_groups.h"

#include <ATen/ops/zeros.h>

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer::optim;

}  // namespace

// Which parameters decay is the model's to say: tests/satformer/models/initialization_test.cpp.
TEST_CASE("parameter groups: what decays, what does not, and how it is told", "[optim]") {
  const auto groups = make_parameter_groups(
      {{"model.embeddings.weight", at::zeros({5, 2})}, {"model.layers.0.attn.q_proj.weight", at::zeros({2, 2}), true}},
      0.1);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].weight_decay == 0.1);
  CHECK(groups[0].num_elements() == 4);
  CHECK(groups[1].weight_decay == 0.0);
  CHECK(describe(groups[0]) == "weight decay 0.1: 1 tensors, 4 values (q_proj)");
  CHECK(describe(groups[1]) == "weight decay 0: 1 tensors, 10 values (embeddings)");
}

TEST_CASE("the two groups hold every parameter once, in the given order", "[optim]") {
  const std::vector<NamedParameter> parameters = {{"model.embeddings.weight", at::zeros({7, 2})},
                                                  {"model.layers.0.attn.q_proj.weight", at::zeros({2, 2}), true},
                                                  {"model.norm.weight", at::zeros({2})},
                                                  {"model.layers.0.mlp.up_proj.weight", at::zeros({3, 2}), true}};
  const std::vector<ParameterGroup> groups = make_parameter_groups(parameters, 0.1);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].label == "decay");
  CHECK(groups[0].weight_decay == 0.1);
  REQUIRE(groups[0].parameters.size() == 2);
  CHECK(groups[0].parameters[0].name == "model.layers.0.attn.q_proj.weight");
  CHECK(groups[0].parameters[1].name == "model.layers.0.mlp.up_proj.weight");
  CHECK(groups[0].num_elements() == 10);
  CHECK(groups[1].label == "no decay");
  CHECK(groups[1].weight_decay == 0.0);
  REQUIRE(groups[1].parameters.size() == 2);
  CHECK(groups[1].parameters[0].name == "model.embeddings.weight");
  CHECK(groups[1].num_elements() == 16);
  // The tensors themselves, not copies.
  CHECK(groups[1].parameters[1].tensor.is_same(parameters[2].tensor));
}

TEST_CASE("the groups of a list without parameters are empty", "[optim]") {
  for (const ParameterGroup& group : make_parameter_groups({}, 0.1)) {
    CHECK(group.parameters.empty());
    CHECK(group.num_elements() == 0);
    CHECK_FALSE(describe(group).empty());
  }
}

TEST_CASE("a group's line names its size and each kind of layer once", "[optim]") {
  const std::vector<ParameterGroup> groups =
      make_parameter_groups({{"model.layers.0.attn.q_proj.weight", at::zeros({2, 2}), true},
                             {"model.layers.1.attn.q_proj.weight", at::zeros({2, 2}), true},
                             {"model.layers.1.attn.o_proj.weight", at::zeros({2, 4}), true},
                             {"lambda", at::zeros({})}},
                            0.1);
  CHECK(describe(groups[0]) == "weight decay 0.1: 3 tensors, 16 values (q_proj, o_proj)");
  CHECK(describe(groups[1]) == "weight decay 0: 1 tensors, 1 values (lambda)");
}
