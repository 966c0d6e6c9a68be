#include "satformer/nn/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <torch/csrc/autograd/custom_function.h>

#include "satformer/core/error.h"
#include "satformer/nn/compute_dtype.h"

namespace satformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// direction 1 rotates, -1 rotates back.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, double direction) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor source = x.to(accumulate_dtype(x));
  const at::Tensor result = at::empty(source.sizes(), source.options());
  const at::Tensor x1 = source.narrow(-1, 0, half), x2 = source.narrow(-1, half, half);
  at::Tensor y1 = result.narrow(-1, 0, half), y2 = result.narrow(-1, half, half);
  at::mul_out(y1, x1, cos).addcmul_(x2, sin, -direction);
  at::mul_out(y2, x2, cos).addcmul_(x1, sin, direction);
  return result.to(x.scalar_type());
}

// The rotation is orthogonal: its backward is the rotation back, and no activation has to be kept for it.
struct RotaryFunction : torch::autograd::Function<RotaryFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(x, cos, sin, 1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require(!at::GradMode::is_enabled(), "apply_rotary: second derivatives are not implemented");
    const variable_list tables = context->get_saved_variables();
    return {rotate(gradients[0], tables[0], tables[1], -1), {}, {}};
  }
};

}  // namespace

RotaryTables make_rotary_tables(const at::Tensor& positions, std::int64_t head_dim, double theta,
                                at::ScalarType dtype) {
  require(head_dim % 2 == 0, "rotary: head_dim must be even, got {}", head_dim);
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, positions.options().dtype(at::kDouble)).div_(static_cast<double>(head_dim));
  const at::Tensor frequencies = at::pow(theta, exponents).reciprocal_();
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(-1).unsqueeze(-1) * frequencies;
  return {angles.cos().to(dtype), angles.sin().to(dtype)};
}

at::Tensor apply_rotary(const at::Tensor& x, const RotaryTables& tables) {
  require(x.size(-1) == 2 * tables.cos.size(-1), "rotary: the tables are for head_dim {}, x has {}",
          2 * tables.cos.size(-1), x.size(-1));
  return RotaryFunction::apply(x, tables.cos, tables.sin);
}

}  // namespace satformer::nn
