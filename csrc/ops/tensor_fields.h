#pragma once
// A struct of tensors and settings names its members once, and everything that needs them one by one follows from that
// list: the operator's flat C++ signature and calls through the dispatcher (csrc/ops/dispatch.h), saving and restoring
// for autograd, which gradients are wanted, and changes of every tensor (tests: to_double, leaves, on a device).
//
//   struct Inputs {
//     at::Tensor x;                      // Tensor
//     at::Tensor weight = {};            // Tensor?, absent while undefined
//     std::optional<at::Tensor> bias;    // Tensor?
//     std::vector<at::Tensor> sources;   // Tensor[]  (also at::TensorList)
//     double eps = 1e-5;                 // float; likewise bool, int64_t, std::array<bool, N> and other scalars
//     Gate gate = Gate::kRelu;           // str
//     static constexpr auto fields() {   // in the order of the schema
//       return std::tuple{&Inputs::x, maybe(&Inputs::weight), &Inputs::bias, &Inputs::sources, &Inputs::eps,
//                         &Inputs::gate};
//     }
//   };
//
// A member may be such a struct itself; its fields then stand in its place. A tensor is "there" when it is defined.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "csrc/ops/gate.h"

namespace satformer::ops {

template <typename T>
concept HasFields = requires { std::remove_cvref_t<T>::fields(); };

// A tensor that the schema calls `Tensor?`; an undefined one is absent.
template <typename Struct>
struct MaybeTensor {
  at::Tensor Struct::* member;
};
template <typename Struct>
constexpr MaybeTensor<Struct> maybe(at::Tensor Struct::* member) {
  return {member};
}

// The member that an entry of fields() names.
template <typename Struct, typename Owner, typename T>
constexpr auto& member_of(Struct& x, T Owner::* member) {
  return x.*member;
}
template <typename Struct, typename Owner>
constexpr auto& member_of(Struct& x, MaybeTensor<Owner> entry) {
  return x.*entry.member;
}

// Calls visit(member) for each field in order, those of a nested struct in its place.
template <typename Struct, typename Visit>
void for_each_field(Struct& x, const Visit& visit) {
  const auto one = [&](auto& member) {
    if constexpr (HasFields<decltype(member)>) {
      for_each_field(member, visit);
    } else {
      visit(member);
    }
  };
  std::apply([&](auto... entry) { (one(member_of(x, entry)), ...); }, std::remove_const_t<Struct>::fields());
}

template <typename T>
inline constexpr bool kIsTensor = std::is_same_v<std::remove_cvref_t<T>, at::Tensor> ||
                                  std::is_same_v<std::remove_cvref_t<T>, std::optional<at::Tensor>>;
template <typename T>
inline constexpr bool kIsTensorList = std::is_same_v<std::remove_cvref_t<T>, std::vector<at::Tensor>> ||
                                      std::is_same_v<std::remove_cvref_t<T>, at::TensorList>;

inline const at::Tensor* tensor_or_null(const at::Tensor& x) { return x.defined() ? &x : nullptr; }
inline const at::Tensor* tensor_or_null(const std::optional<at::Tensor>& x) {
  return x.has_value() && x->defined() ? &*x : nullptr;
}

// Calls visit(tensor) for each tensor that is there, lists one by one.
template <typename Struct, typename Visit>
void for_each_tensor(const Struct& x, const Visit& visit) {
  for_each_field(x, [&](const auto& field) {
    if constexpr (kIsTensor<decltype(field)>) {
      if (const at::Tensor* tensor = tensor_or_null(field)) visit(*tensor);
    } else if constexpr (kIsTensorList<decltype(field)>) {
      for (const at::Tensor& tensor : field) visit(tensor);
    }
  });
}

// The tensors that are there, in the order of the fields, lists one by one.
template <typename Struct>
std::vector<at::Tensor> tensors_of(const Struct& x) {
  std::vector<at::Tensor> list;
  for_each_tensor(x, [&](const at::Tensor& tensor) { list.push_back(tensor); });
  return list;
}

// `x` with change(tensor) in the place of each tensor that is there.
template <typename Struct, typename Change>
Struct map_tensors(Struct x, const Change& change) {
  for_each_field(x, [&](auto& field) {
    if constexpr (kIsTensor<decltype(field)>) {
      if (const at::Tensor* tensor = tensor_or_null(field)) field = change(*tensor);
    } else if constexpr (kIsTensorList<decltype(field)>) {
      for (at::Tensor& tensor : field) tensor = change(tensor);
    }
  });
  return x;
}

// Whether one of the tensors requires grad.
template <typename Struct>
bool requires_grad(const Struct& x) {
  bool result = false;
  for_each_tensor(x, [&](const at::Tensor& tensor) { result = result || tensor.requires_grad(); });
  return result;
}

// --- autograd ---
// A torch::autograd::Function over a struct is applied to the struct, which autograd does not look into, and to its
// tensors as one list:  F::apply(in, at::TensorList(tensors_of(in))). Its forward() takes both and calls save_fields();
// its backward() reads the struct again by saved_fields(), asks wanted() and answers gradients_for(). `Context` is
// torch::autograd::AutogradContext; a function has one such struct.

// How many tensors each tensor field holds: 0 or 1, of a list its length.
template <typename Struct>
std::vector<std::int64_t> tensor_counts(const Struct& x) {
  std::vector<std::int64_t> counts;
  for_each_field(x, [&](const auto& field) {
    if constexpr (kIsTensor<decltype(field)>) {
      counts.push_back(tensor_or_null(field) != nullptr ? 1 : 0);
    } else if constexpr (kIsTensorList<decltype(field)>) {
      counts.push_back(static_cast<std::int64_t>(field.size()));
    }
  });
  return counts;
}

// Saves the fields of `kept`: `applied`, the struct that the function was applied to, less the tensors that the
// backward pass does not read (lists keep their length). `more`: tensors beside the struct.
template <typename Context, typename Struct>
void save_fields(Context* context, const Struct& applied, const Struct& kept, std::vector<at::Tensor> more = {}) {
  std::vector<at::Tensor> tensors;
  std::size_t scalars = 0;
  for_each_field(kept, [&](const auto& field) {
    if constexpr (kIsTensor<decltype(field)>) {
      const at::Tensor* tensor = tensor_or_null(field);
      tensors.push_back(tensor != nullptr ? *tensor : at::Tensor());
    } else if constexpr (kIsTensorList<decltype(field)>) {
      tensors.insert(tensors.end(), field.begin(), field.end());
    } else if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(field)>>) {
      context->saved_data[std::to_string(scalars++)] = static_cast<std::int64_t>(field);
    } else {
      context->saved_data[std::to_string(scalars++)] = field;
    }
  });
  std::move(more.begin(), more.end(), std::back_inserter(tensors));
  context->saved_data["counts"] = tensor_counts(applied);
  context->save_for_backward(std::move(tensors));
}

// The struct that save_fields() kept; `more` takes what was saved beside it.
template <typename Struct, typename Context>
Struct saved_fields(Context* context, std::vector<at::Tensor>* more = nullptr) {
  const std::vector<at::Tensor> saved = context->get_saved_variables();
  const std::vector<std::int64_t> counts = context->saved_data["counts"].toIntVector();
  auto next = saved.begin();
  auto count = counts.begin();
  std::size_t scalars = 0;
  Struct x;
  for_each_field(x, [&](auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (kIsTensor<Field>) {
      if (next->defined()) field = *next;
      ++next, ++count;
    } else if constexpr (kIsTensorList<Field>) {
      field.assign(next, next + *count);
      next += *count++;
    } else if constexpr (std::is_enum_v<Field>) {
      field = static_cast<Field>(context->saved_data[std::to_string(scalars++)].toInt());
    } else {
      field = context->saved_data[std::to_string(scalars++)].template to<Field>();
    }
  });
  if (more != nullptr) more->assign(next, saved.end());
  return x;
}

// Where a tensor field stands among the tensor fields.
template <typename Struct, typename Member>
std::size_t tensor_field_index(const Struct& x, Member Struct::* member) {
  std::size_t index = 0, result = 0;
  for_each_field(x, [&](const auto& field) {
    if constexpr (kIsTensor<decltype(field)> || kIsTensorList<decltype(field)>) {
      if (static_cast<const void*>(&field) == static_cast<const void*>(&(x.*member))) result = index;
      ++index;
    }
  });
  return result;
}

// Whether a tensor of the field needs a gradient. The edges of the function count the tensors that it was applied to.
template <typename Context, typename Struct, typename Member>
bool needs_gradient(Context* context, Member Struct::* member) {
  const std::vector<std::int64_t> counts = context->saved_data["counts"].toIntVector();
  const std::size_t index = tensor_field_index(Struct{}, member);
  std::size_t edge = 0;
  for (std::size_t i = 0; i < index; ++i) edge += static_cast<std::size_t>(counts[i]);
  bool needed = false;
  for (std::int64_t i = 0; i < counts[index]; ++i) needed = context->needs_input_grad(edge++) || needed;
  return needed;
}

// An operator's output_mask: wanted(context, &Inputs::x, &Inputs::weight).
template <typename Context, typename... Members>
std::array<bool, sizeof...(Members)> wanted(Context* context, Members... members) {
  return {needs_gradient(context, members)...};
}

// What backward() returns: the gradients, in a struct of the same type, of the tensors that the function was applied
// to. Undefined tensors and empty lists are gradients that are not wanted.
template <typename Context, typename Struct>
std::vector<at::Tensor> gradients_for(Context* context, const Struct& gradients) {
  const std::vector<std::int64_t> counts = context->saved_data["counts"].toIntVector();
  std::vector<at::Tensor> list(1);  // the struct itself
  auto count = counts.begin();
  for_each_field(gradients, [&](const auto& field) {
    if constexpr (kIsTensor<decltype(field)>) {
      const at::Tensor* tensor = tensor_or_null(field);
      if (*count++ == 1) list.push_back(tensor != nullptr ? *tensor : at::Tensor());
    } else if constexpr (kIsTensorList<decltype(field)>) {
      const std::size_t end = list.size() + static_cast<std::size_t>(*count++);
      list.insert(list.end(), field.begin(), field.end());
      list.resize(end);
    }
  });
  return list;
}

}  // namespace satformer::ops
