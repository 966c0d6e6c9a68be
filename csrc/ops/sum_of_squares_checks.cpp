#include "csrc/ops/sum_of_squares_checks.h"

#include "csrc/ops/flat_list.h"

namespace satformer::ops {

void check_sum_of_squares(at::TensorList tensors) {
  const auto item = [&](std::size_t i) { return ListItem{"sum_of_squares", "tensors", i, tensors[i]}; };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_item_dtype(item(i));
    check_item_device(item(i), item(0));
  }
}

std::vector<at::Tensor> dense_tensors(at::TensorList tensors) {
  std::vector<at::Tensor> dense;
  dense.reserve(tensors.size());
  for (const at::Tensor& x : tensors) {
    if (x.numel() > 0) dense.push_back(x.is_non_overlapping_and_dense() ? x : x.contiguous());
  }
  return dense;
}

}  // namespace satformer::ops
