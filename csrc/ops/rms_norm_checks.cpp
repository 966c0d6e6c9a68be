#include "csrc/ops/rms_norm_checks.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "csrc/ops/checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

at::Tensor empty_like(const at::Tensor& x, c10::SymIntArrayRef sizes, at::ScalarType dtype) {
  return at::empty_symint(sizes, x.options().dtype(dtype));
}

// [..., 1]
std::vector<c10::SymInt> sizes_of_inverse(const at::Tensor& x) {
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes.back() = 1;
  return sizes;
}

void check_rows(const Argument& x) {
  check_values_dtype(x);
  check_dims_at_least(x, 1, "[..., n]");
}

// Another tensor of the shape of x, in any floating dtype.
void check_beside(const Argument& other, const Argument& x, const char* why) {
  check_values_dtype(other);
  check_sizes(other, x.tensor.sym_sizes(), why);
  check_device(other, x);
}

void check_weight(const Argument& weight, const Argument& x) {
  check_values_dtype(weight);
  const c10::SymInt n = x.tensor.sym_size(-1);
  check_sizes(weight, c10::SymIntArrayRef(n), ", the last dimension of the rows");
  check_device(weight, x);
}

void check_inverse(const Argument& inverse, const Argument& sum) {
  check_sizes(inverse, sizes_of_inverse(sum.tensor), ", one number for each row of sum");
  TORCH_CHECK_TYPE(inverse.tensor.scalar_type() == accumulate_dtype(sum.tensor), inverse.op, ": ", inverse.name,
                   " must be ", accumulate_dtype(sum.tensor), " for a sum of ", sum.tensor.scalar_type(), ", got ",
                   inverse.tensor.scalar_type());
  check_device(inverse, sum);
}

at::Tensor weight_row(const at::Tensor& weight, const at::Tensor& x) {
  return weight.to(accumulate_dtype(x)).contiguous();
}

}  // namespace

NormOutputs outputs_of_rms_norm(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                                const at::Tensor& weight, double eps, std::optional<at::ScalarType> out_dtype) {
  const char* op = residual ? "add_rms_norm" : "rms_norm";
  const Argument named{op, "x", x};
  check_rows(named);
  if (residual) check_beside({op, "residual", *residual}, named, " like x");
  check_weight({op, "weight", weight}, named);
  TORCH_CHECK_VALUE(eps >= 0, op, ": eps must not be negative, got ", eps);
  const at::ScalarType y_dtype = out_dtype.value_or(x.scalar_type());
  check_values_dtype(op, "out_dtype", y_dtype, x.device());
  NormOutputs out;
  if (residual) out.sum = empty_like(x, x.sym_sizes(), x.scalar_type());
  out.y = empty_like(x, x.sym_sizes(), y_dtype);
  out.inverse_rms = empty_like(x, sizes_of_inverse(x), accumulate_dtype(x));
  return out;
}

at::Tensor outputs_of_rms_norm_apply(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                     std::optional<at::ScalarType> out_dtype) {
  const char* op = "rms_norm_apply";
  const Argument named{op, "sum", sum};
  check_rows(named);
  check_weight({op, "weight", weight}, named);
  check_inverse({op, "inverse_rms", inverse_rms}, named);
  const at::ScalarType y_dtype = out_dtype.value_or(sum.scalar_type());
  check_values_dtype(op, "out_dtype", y_dtype, sum.device());
  return empty_like(sum, sum.sym_sizes(), y_dtype);
}

NormGradients outputs_of_rms_norm_backward(const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum,
                                           const at::Tensor& sum, const at::Tensor& weight,
                                           const at::Tensor& inverse_rms,
                                           std::optional<at::ScalarType> residual_dtype) {
  const char* op = "rms_norm_backward";
  const Argument named{op, "sum", sum};
  check_rows(named);
  check_beside({op, "grad_y", grad_y}, named, " like sum");
  if (given(grad_sum)) check_beside({op, "grad_sum", *grad_sum}, named, " like sum");
  check_weight({op, "weight", weight}, named);
  check_inverse({op, "inverse_rms", inverse_rms}, named);
  NormGradients out;
  out.x = empty_like(sum, sum.sym_sizes(), sum.scalar_type());
  out.weight = empty_like(weight, weight.sym_sizes(), weight.scalar_type());
  if (residual_dtype) {
    check_values_dtype(op, "residual_dtype", *residual_dtype, sum.device());
    if (*residual_dtype != sum.scalar_type()) out.residual = empty_like(sum, sum.sym_sizes(), *residual_dtype);
  }
  return out;
}

NormRows norm_rows(const at::Tensor& x, const std::optional<at::Tensor>& residual, const at::Tensor& weight, double eps,
                   const NormOutputs& outputs) {
  NormRows rows;
  rows.x = rows_of(x);
  if (residual) rows.residual = rows_of(*residual);
  rows.weight = weight_row(weight, x);
  rows.eps = eps;
  if (outputs.sum.defined()) rows.sum = rows_of(outputs.sum);
  rows.y = rows_of(outputs.y);
  rows.inverse_rms = outputs.inverse_rms.contiguous().view(-1);
  return rows;
}

NormBackwardRows norm_backward_rows(const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum,
                                    const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                    const NormGradients& outputs, const NormBlocks& blocks) {
  NormBackwardRows rows;
  rows.grad_y = rows_of(grad_y);
  if (given(grad_sum)) rows.grad_sum = rows_of(*grad_sum);
  rows.sum = rows_of(sum);
  rows.weight = weight_row(weight, sum);
  rows.inverse_rms = inverse_rms.contiguous().view(-1);
  rows.grad_x = rows_of(outputs.x);
  if (outputs.residual.defined()) rows.grad_residual = rows_of(outputs.residual);
  rows.grad_weight = outputs.weight;
  const int64_t m = rows.sum.size(0);
  rows.rows_a_block = std::max(blocks.least_rows, (m + blocks.most_blocks - 1) / blocks.most_blocks);
  rows.partial_sums =
      at::empty({(m + rows.rows_a_block - 1) / rows.rows_a_block, rows.sum.size(1)}, rows.weight.options());
  return rows;
}

}  // namespace satformer::ops
