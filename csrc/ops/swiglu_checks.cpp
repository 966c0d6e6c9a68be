#include "csrc/ops/swiglu_checks.h"

#include <ATen/ops/empty.h>

#include "csrc/ops/checks.h"

namespace satformer::ops {
namespace {

// The sizes of y.
std::vector<c10::SymInt> check_packed(const Argument& packed) {
  check_values_dtype(packed);
  check_dims_at_least(packed, 1, "[..., 2f]");
  std::vector<c10::SymInt> sizes = packed.tensor.sym_sizes().vec();
  TORCH_CHECK(sizes.back() % 2 == 0, packed.op, ": packed must be [..., 2f], got ", packed.tensor.sym_sizes());
  sizes.back() = sizes.back() / 2;
  return sizes;
}

}  // namespace

at::Tensor outputs_of_swiglu(const at::Tensor& packed) {
  return at::empty_symint(check_packed({"swiglu", "packed", packed}), packed.options());
}

std::tuple<at::Tensor, at::Tensor> outputs_of_swiglu_backward(const at::Tensor& grad, const at::Tensor& packed,
                                                              bool with_output) {
  const Argument named{"swiglu_backward", "packed", packed}, named_grad{"swiglu_backward", "grad", grad};
  const std::vector<c10::SymInt> sizes = check_packed(named);
  check_values_dtype(named_grad);
  check_sizes(named_grad, sizes, ", half of packed");
  check_device(named_grad, named);
  return {at::empty_symint(packed.sym_sizes(), packed.options()),
          with_output ? at::empty_symint(sizes, packed.options()) : at::Tensor()};
}

void check_swiglu_backward_in_place(at::Tensor& packed, at::Tensor& grad) {
  const Argument named{"swiglu_backward_", "packed", packed}, named_grad{"swiglu_backward_", "grad", grad};
  check_sizes(named_grad, check_packed(named), ", half of packed");
  check_same_dtype(named_grad, named);
  check_device(named_grad, named);
  for (const Argument* x : {&named, &named_grad}) {
    TORCH_CHECK(x->tensor.is_contiguous(), x->op, ": ", x->name, " must be contiguous, got strides ",
                x->tensor.sym_strides());
  }
  TORCH_CHECK(packed.is_meta() || !grad.is_alias_of(packed),
              "swiglu_backward_: grad must not share memory with packed, both are overwritten");
}

}  // namespace satformer::ops
