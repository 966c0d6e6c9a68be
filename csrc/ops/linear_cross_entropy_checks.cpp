#include "csrc/ops/linear_cross_entropy_checks.h"

#include <ATen/ops/empty.h>

#include "csrc/ops/checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {

void check_linear_cross_entropy(const char* op, const CrossEntropyArguments& arguments) {
  const Argument hidden{op, "hidden", arguments.hidden}, weight{op, "weight", arguments.weight},
      targets{op, "targets", arguments.targets};
  check_values_dtype(hidden);
  TORCH_CHECK(hidden.tensor.dim() == 2, op, ": hidden must be [N, d], got ", hidden.tensor.sym_sizes());
  TORCH_CHECK(weight.tensor.dim() == 2 && weight.tensor.sym_size(1) == hidden.tensor.sym_size(1), op,
              ": weight must be [V, ", hidden.tensor.sym_size(1), "] for a hidden of ", hidden.tensor.sym_sizes(),
              ", got ", weight.tensor.sym_sizes());
  check_same_dtype(weight, hidden);
  check_device(weight, hidden);
  TORCH_CHECK_TYPE(targets.tensor.scalar_type() == at::kLong, op, ": targets must be int64, got ",
                   targets.tensor.scalar_type());
  check_sizes(targets, hidden.tensor.sym_sizes().slice(0, 1), ", one for each row of hidden");
  check_device(targets, hidden);
  if (arguments.grad_weight_dtype) {
    check_values_dtype(op, "grad_weight_dtype", *arguments.grad_weight_dtype, hidden.tensor.device());
  }
}

CrossEntropyResults outputs_of_linear_cross_entropy(const CrossEntropyArguments& arguments) {
  const at::Tensor &hidden = arguments.hidden, &weight = arguments.weight;
  CrossEntropyResults results;
  results.losses = at::empty_symint(arguments.targets.sym_sizes(), hidden.options().dtype(accumulate_dtype(hidden)));
  if (arguments.wanted[0]) results.grad_hidden = at::empty_symint(hidden.sym_sizes(), hidden.options());
  if (arguments.wanted[1]) {
    const at::ScalarType dtype = arguments.grad_weight_dtype.value_or(weight.scalar_type());
    results.grad_weight = at::empty_symint(weight.sym_sizes(), weight.options().dtype(dtype));
  }
  return results;
}

}  // namespace satformer::ops
