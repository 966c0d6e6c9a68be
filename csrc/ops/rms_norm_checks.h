#pragma once
// Checked arguments of the RMSNorm operators, their output tensors, and both as the kernels take them: matrices of
// rows. Shared by every dispatch key.
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace satformer::ops {

struct NormOutputs {
  at::Tensor sum;          // undefined without a residual
  at::Tensor y;            // [..., n]
  at::Tensor inverse_rms;  // [..., 1], arithmetic dtype
};
// rms_norm and, with a residual, add_rms_norm: checks, then empty outputs.
NormOutputs outputs_of_rms_norm(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                                const at::Tensor& weight, double eps, std::optional<at::ScalarType> out_dtype);
// rms_norm_apply: checks, then an empty y.
at::Tensor outputs_of_rms_norm_apply(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                     std::optional<at::ScalarType> out_dtype);

struct NormGradients {
  at::Tensor x;         // [..., n], sum's dtype
  at::Tensor weight;    // [n], weight's dtype
  at::Tensor residual;  // [..., n], or undefined

  static constexpr auto fields() {
    return std::tuple{&NormGradients::x, &NormGradients::weight, &NormGradients::residual};
  }
};
// rms_norm_backward: checks, then empty gradients.
NormGradients outputs_of_rms_norm_backward(const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum,
                                           const at::Tensor& sum, const at::Tensor& weight,
                                           const at::Tensor& inverse_rms, std::optional<at::ScalarType> residual_dtype);

// For the kernels: [rows, n] matrices of any floating dtype, contiguous in n; weight and inverse_rms contiguous in the
// arithmetic dtype.
struct NormRows {
  at::Tensor x;         // of rms_norm_apply and the backward: sum
  at::Tensor residual;  // undefined: 0
  at::Tensor weight;    // [n]
  double eps = 0;
  at::Tensor sum;          // out; undefined without a residual
  at::Tensor y;            // out
  at::Tensor inverse_rms;  // [rows], out; of rms_norm_apply: in
};
NormRows norm_rows(const at::Tensor& x, const std::optional<at::Tensor>& residual, const at::Tensor& weight, double eps,
                   const NormOutputs& outputs);

// How the rows are split where they are summed: the blocks in order, and in each its rows.
struct NormBlocks {
  int64_t least_rows, most_blocks;
};

struct NormBackwardRows {
  at::Tensor grad_y, grad_sum;  // grad_sum undefined: 0
  at::Tensor sum, weight;
  at::Tensor inverse_rms;                         // [rows]
  at::Tensor grad_x, grad_residual, grad_weight;  // out; grad_residual undefined where not wanted
  at::Tensor partial_sums;                        // [blocks, n] scratch, arithmetic dtype
  int64_t rows_a_block = 0;
};
NormBackwardRows norm_backward_rows(const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum,
                                    const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                    const NormGradients& outputs, const NormBlocks& blocks);

}  // namespace satformer::ops
