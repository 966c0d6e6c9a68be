#pragma once
// Which parameters decay. Weight decay acts on the matrices of linear layers only: the attention and MLP projections
// and an untied output head. Embeddings (and so a tied head), norms, biases, gates, lambdas, depth weights and
// hyper-connection parameters are exempt: pulling them to zero would pull an architecture to another one.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace satformer::optim {

struct NamedParameter {
  std::string name;  // the checkpoint's name
  at::Tensor tensor;
};

struct ParameterGroup {
  std::string label;  // "decay", "no decay"
  double weight_decay = 0.0;
  std::vector<NamedParameter> parameters;

  std::int64_t num_elements() const;
};

// Whether a parameter of that name and number of dimensions decays. The list is positive: what a new architecture adds
// is exempt until it is named here.
bool decays(std::string_view name, std::int64_t dimensions);

// The two groups, in the order in which parameters were given; a group may be empty.
std::vector<ParameterGroup> make_parameter_groups(const std::vector<NamedParameter>& parameters, double weight_decay);

// One line a group: "decay 0.1: 43 tensors, 1,234,567 values (q_proj, k_proj, ...)".
std::string describe(const ParameterGroup& group);

}  // namespace satformer::optim
