#pragma once
// What the autograd nodes of this folder have in common: a record of what their backward pass needs besides tensors,
// and lists of tensors of which some are absent (an autograd function takes no undefined ones).
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <vector>

#include "satformer/core/error.h"

namespace satformer::fused {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Keeps `record`, a torch::CustomClassHolder, for the backward pass of the node that `context` belongs to.
template <typename Record>
void keep_record(AutogradContext& context, const c10::intrusive_ptr<Record>& record) {
  context.saved_data["record"] = c10::IValue::make_capsule(record);
}

template <typename Record>
const Record& kept_record(AutogradContext& context) {
  return static_cast<const Record&>(*context.saved_data["record"].toCapsule());
}

// For the backward pass of nodes that are differentiable once. The plain path (training.fused false) is differentiable
// any number of times.
inline void refuse_second_derivatives(const char* node) {
  require(!at::GradMode::is_enabled(), "{}: second derivatives are not implemented", node);
}

inline bool is_present(const at::Tensor& x) { return x.defined(); }
inline bool is_present(const std::optional<at::Tensor>& x) { return x.has_value(); }
inline const at::Tensor& value_of(const at::Tensor& x) { return x; }
inline const at::Tensor& value_of(const std::optional<at::Tensor>& x) { return *x; }

// Which of some fields are there. `fields`: pointers to tensors or to optional tensors.
template <typename Fields>
std::vector<bool> presence_of(const Fields& fields) {
  std::vector<bool> result;
  for (const auto* field : fields) result.push_back(is_present(*field));
  return result;
}

template <typename Fields>
void append_present(variable_list& to, const Fields& fields) {
  for (const auto* field : fields) {
    if (is_present(*field)) to.push_back(value_of(*field));
  }
}

// Sets the fields that were there from `next` on; returns where the rest begins.
template <typename Fields>
variable_list::const_iterator restore_present(const Fields& fields, const std::vector<bool>& presence,
                                              variable_list::const_iterator next) {
  std::size_t i = 0;
  for (auto* field : fields) {
    if (presence[i++]) *field = *next++;
  }
  return next;
}

}  // namespace satformer::fused
