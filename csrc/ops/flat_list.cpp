#include "csrc/ops/flat_list.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <ostream>

namespace satformer::ops {

std::ostream& operator<<(std::ostream& out, const ListItem& item) {
  return out << item.list << "[" << item.index << "]";
}

void check_item_dtype(const ListItem& item) {
  TORCH_CHECK(item.tensor.defined(), item.op, ": ", item, " must be a tensor, got an undefined one");
  const at::ScalarType dtype = item.tensor.scalar_type();
  const bool known = dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf || dtype == at::kDouble;
  TORCH_CHECK_TYPE(known, item.op, ": ", item, " must be float32, bfloat16, float16 or float64, got ", dtype);
}

void check_item_device(const ListItem& item, const ListItem& like) {
  TORCH_CHECK(item.tensor.device() == like.tensor.device(), item.op, ": ", item, " must be on ", like.tensor.device(),
              " like ", like, ", got ", item.tensor.device());
}

void check_item_dense(const ListItem& item) {
  TORCH_CHECK(item.tensor.is_non_overlapping_and_dense(), item.op, ": ", item,
              " must fill one stretch of memory without gaps or overlaps, got sizes ", item.tensor.sym_sizes(),
              ", strides ", item.tensor.sym_strides(), "; call contiguous() on it first");
}

void check_item_layout(const ListItem& item, const ListItem& like) {
  const at::Tensor &x = item.tensor, &expected = like.tensor;
  TORCH_CHECK(x.sym_sizes() == expected.sym_sizes(), item.op, ": ", item, " must be ", expected.sym_sizes(), " like ",
              like, ", got ", x.sym_sizes());
  if (x.sym_numel() == 0) return;
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    TORCH_CHECK(x.sym_size(d) == 1 || x.sym_stride(d) == expected.sym_stride(d), item.op, ": ", item,
                " must have the strides ", expected.sym_strides(), " of ", like, ", got ", x.sym_strides(),
                "; copy it into at::empty_like of that tensor first");
  }
}

void check_not_recorded(const char* op, std::initializer_list<NamedList> lists, const char* instead) {
  if (!at::GradMode::is_enabled()) return;
  for (const NamedList& list : lists) {
    for (std::size_t i = 0; i < list.tensors.size(); ++i) {
      const ListItem item{op, list.name, i, list.tensors[i]};
      TORCH_CHECK(!item.tensor.defined() || !item.tensor.requires_grad(), op, ": has no derivative, but ", item,
                  " requires grad; ", instead);
    }
  }
}

}  // namespace satformer::ops
