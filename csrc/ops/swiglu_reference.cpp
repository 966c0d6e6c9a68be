#include "csrc/ops/swiglu_reference.h"
#include "csrc/ops/row_arguments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/slice.h>

namespace satformer::ops {
namespace {

// gate and up, in the arithmetic dtype.
std::tuple<at::Tensor, at::Tensor> unpack(const at::Tensor& packed) {
  const at::Tensor x = packed.to(accumulate_dtype(packed));
  const c10::SymInt f = x.sym_size(-1) / 2;
  return {at::slice_symint(x, -1, 0, f), at::slice_symint(x, -1, f)};
}

}  // namespace

at::Tensor swiglu_reference(const at::Tensor& packed) {
  const auto [gate, up] = unpack(packed);
  return (at::silu(gate) * up).to(packed.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward_reference(const at::Tensor& grad, const at::Tensor& packed,
                                                             bool with_output) {
  const auto [gate, up] = unpack(packed);
  const at::Tensor g = grad.to(gate.scalar_type()), s = at::sigmoid(gate);
  const at::Tensor grad_packed = at::cat({g * up * s * (1 + gate * (1 - s)), g * gate * s}, -1);
  return {grad_packed.to(packed.scalar_type()), with_output ? swiglu_reference(packed) : at::Tensor()};
}

}  // namespace satformer::ops
