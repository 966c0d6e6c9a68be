#pragma once
// Which parameters decay: those that the model names (LanguageModel::decayed_parameters). Weight decay acts on the
// matrices of linear layers only: the attention and MLP projections and an untied output head. Embeddings (and so a
// tied head), norms, biases, gates, lambdas, depth weights and hyper-connection parameters are exempt: pulling them to
// zero would pull an architecture to another one.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace satformer::optim {

struct NamedParameter {
  std::string name;  // the checkpoint's name
  at::Tensor tensor;
  bool decays = false;
};

struct ParameterGroup {
  std::string label;  // "decay", "no decay"
  double weight_decay = 0.0;
  std::vector<NamedParameter> parameters;

  std::int64_t num_elements() const;
};

// The two groups, in the order in which parameters were given; a group may be empty.
std::vector<ParameterGroup> make_parameter_groups(const std::vector<NamedParameter>& parameters, double weight_decay);

// One line a group: "weight decay 0.1: 43 tensors, 1234567 values (q_proj, k_proj, ...)".
std::string describe(const ParameterGroup& group);

}  // namespace satformer::optim
