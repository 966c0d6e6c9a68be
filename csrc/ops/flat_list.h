#pragma once
// Lists of tensors that operators take as one flat buffer: what sum_of_squares and adamw_ share. The checks use
// symbolic sizes, so that every dispatch key calls the same ones, and throw a c10::Error that names operator, list,
// index, what was expected and what came.
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <initializer_list>
#include <iosfwd>

namespace satformer::ops {

// One tensor of a list, for messages: "gradients[3]".
struct ListItem {
  const char* op;
  const char* list;
  std::size_t index;
  const at::Tensor& tensor;
};
std::ostream& operator<<(std::ostream& out, const ListItem& item);

void check_item_dtype(const ListItem& item);                         // defined; float32, bfloat16, float16 or float64
void check_item_device(const ListItem& item, const ListItem& like);  // the same
// No gaps and no overlaps: its numel() numbers fill one stretch of memory, in whatever order of the dimensions.
void check_item_dense(const ListItem& item);
// The sizes of `like`, and its strides: number i of the one's memory belongs to number i of the other's. `like` is
// dense.
void check_item_layout(const ListItem& item, const ListItem& like);

// No list is differentiable: an error, with what to do instead, where autograd would record the call.
struct NamedList {
  const char* name = nullptr;
  at::TensorList tensors;
};
void check_not_recorded(const char* op, std::initializer_list<NamedList> lists, const char* instead);

}  // namespace satformer::ops
