#pragma once
// The arguments of linear_cross_entropy as structs, their checks, shared by every dispatch key, and the results.
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

namespace satformer::ops {

struct CrossEntropyInputs {
  at::Tensor hidden, weight, targets;
  int64_t ignore_index = -100;
  double scale = 1;

  static constexpr auto fields() {
    using In = CrossEntropyInputs;
    return std::tuple{&In::hidden, &In::weight, &In::targets, &In::ignore_index, &In::scale};
  }
};

// Of linear_cross_entropy_with_gradients.
struct CrossEntropyArguments : CrossEntropyInputs {
  std::array<bool, 2> wanted{false, false};           // gradients of hidden and weight
  std::optional<at::ScalarType> grad_weight_dtype{};  // absent: weight's

  static constexpr auto fields() {
    using In = CrossEntropyArguments;
    return std::tuple_cat(CrossEntropyInputs::fields(), std::tuple{&In::wanted, &In::grad_weight_dtype});
  }
};
// Throws where shapes, dtypes or devices are wrong; targets' values are not looked at.
void check_linear_cross_entropy(const char* op, const CrossEntropyArguments& arguments);

struct CrossEntropyResults {
  at::Tensor losses;       // [N], one for each token, arithmetic dtype
  at::Tensor grad_hidden;  // undefined where not wanted
  at::Tensor grad_weight;
};
CrossEntropyResults outputs_of_linear_cross_entropy(const CrossEntropyArguments& arguments);

}  // namespace satformer::ops
