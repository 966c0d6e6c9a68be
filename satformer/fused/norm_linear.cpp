#include "satformer/fused/norm_linear.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/graph_task.h>

#include <utility>

#include "csrc/ops/rms_norm.h"
#include "csrc/ops/swiglu.h"
#include "satformer/fused/autograd_record.h"
#include "satformer/fused/no_autocast.h"
#include "satformer/runtime/compute_dtype.h"

namespace satformer::fused {
namespace {

at::Tensor rows_of(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// x W^T + b for x [..., in].
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor rows = rows_of(x);
  const at::Tensor y = bias.defined() ? at::addmm(bias, rows, weight.t()) : at::mm(rows, weight.t());
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return y.view(sizes);
}

at::Tensor input_gradient(const at::Tensor& grad, const at::Tensor& weight) {
  std::vector<std::int64_t> sizes = grad.sizes().vec();
  sizes.back() = weight.size(1);
  return at::mm(rows_of(grad), weight).view(sizes);
}

// The gradients of the parameters of `weight` for y = x W^T + b, in the parameters' dtype.
variable_list parameter_gradients(const PackedWeight& weight, at::ScalarType dtype, const at::Tensor& grad,
                                  const at::Tensor& x) {
  const at::Tensor rows = rows_of(grad);
  const at::Tensor weight_gradient = at::mm(rows.t(), rows_of(x)).to(dtype);
  const at::Tensor bias_gradient = weight.has_bias() ? rows.sum(0, false, dtype) : at::Tensor();
  return weight.split_gradients(weight_gradient, bias_gradient);
}

// What a backward needs besides tensors. PackedWeight is a handle on shared parameters: a copy keeps them alive.
struct WeightRecord : torch::CustomClassHolder {
  WeightRecord(PackedWeight weight, at::ScalarType dtype) : weight(std::move(weight)), dtype(dtype) {}
  PackedWeight weight;
  at::ScalarType dtype;  // of the parameters
};

void keep(AutogradContext* context, const PackedWeight& weight, at::TensorList parameters) {
  keep_record(*context, c10::make_intrusive<WeightRecord>(weight, parameters.front().scalar_type()));
  context->set_materialize_grads(false);
}

void append(variable_list& to, variable_list from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Inputs: x, pending (if any), the norm's weight, eps, the packed weight, its parameters. Outputs: y and the sum (x
// itself without a pending part), so that what else flows back into the stream joins in the same pass.
struct NormLinear : torch::autograd::Function<NormLinear> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& pending,
                               const at::Tensor& norm_weight, double eps, PackedWeight* packed,
                               at::TensorList parameters) {
    const at::ScalarType dtype = compute_dtype(x);
    const NoAutocast no_autocast(x.device().type());
    at::Tensor sum = x, normalized, inverse_rms;
    if (pending.has_value()) {
      std::tie(sum, normalized, inverse_rms) = ops::add_rms_norm(x, *pending, norm_weight, eps, dtype);
      context->saved_data["pending"] = static_cast<std::int64_t>(pending->scalar_type());
    } else {
      std::tie(normalized, inverse_rms) = ops::rms_norm(x, norm_weight, eps, dtype);
    }
    const at::Tensor weight = packed->weight(dtype);
    keep(context, *packed, parameters);
    context->save_for_backward({sum, norm_weight, inverse_rms, weight});
    const at::Tensor y = product(normalized, weight, packed->bias(dtype));
    return {y, sum};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivatives("norm_linear");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &sum = saved[0], &norm_weight = saved[1], &inverse_rms = saved[2], &weight = saved[3];
    const NoAutocast no_autocast(sum.device().type());
    const auto& record = kept_record<WeightRecord>(*context);
    const bool has_pending = context->saved_data.count("pending") > 0;
    const at::Tensor& grad_sum = grads[1];
    const std::optional<at::ScalarType> pending_dtype =
        has_pending ? std::optional(static_cast<at::ScalarType>(context->saved_data["pending"].toInt())) : std::nullopt;
    const at::Tensor normalized = ops::rms_norm_apply(sum, norm_weight, inverse_rms, weight.scalar_type());
    const auto [grad_x, grad_norm_weight, grad_pending] = ops::rms_norm_backward(
        input_gradient(grads[0], weight), grad_sum.defined() ? std::optional(grad_sum) : std::nullopt, sum, norm_weight,
        inverse_rms, pending_dtype);
    variable_list result{grad_x, {}, grad_norm_weight, {}, {}};
    if (has_pending) result[1] = grad_pending.defined() ? grad_pending : grad_x;
    append(result, parameter_gradients(record.weight, record.dtype, grads[0], normalized));
    return result;
  }
};

// Inputs: x, the packed weight, its parameters.
struct PackedLinear : torch::autograd::Function<PackedLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, PackedWeight* packed,
                            at::TensorList parameters) {
    const at::ScalarType dtype = compute_dtype(x);
    const NoAutocast no_autocast(x.device().type());
    const at::Tensor weight = packed->weight(dtype), input = x.to(dtype);
    keep(context, *packed, parameters);
    context->saved_data["x"] = static_cast<std::int64_t>(x.scalar_type());
    context->save_for_backward({input, weight});
    return product(input, weight, packed->bias(dtype));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivatives("packed_linear");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const NoAutocast no_autocast(x.device().type());
    const auto& record = kept_record<WeightRecord>(*context);
    const auto x_dtype = static_cast<at::ScalarType>(context->saved_data["x"].toInt());
    variable_list result{input_gradient(grads[0], weight).to(x_dtype), {}};
    append(result, parameter_gradients(record.weight, record.dtype, grads[0], x));
    return result;
  }
};

// Inputs: [g | u] in the compute dtype, the packed weight, its parameters.
struct SwigluLinear : torch::autograd::Function<SwigluLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& packed_input, PackedWeight* packed,
                            at::TensorList parameters) {
    const NoAutocast no_autocast(packed_input.device().type());
    const at::ScalarType dtype = packed_input.scalar_type();
    const at::Tensor weight = packed->weight(dtype);
    keep(context, *packed, parameters);
    context->save_for_backward({packed_input, weight});
    return product(ops::swiglu(packed_input), weight, packed->bias(dtype));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivatives("swiglu_linear");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &packed_input = saved[0], &weight = saved[1];
    const NoAutocast no_autocast(packed_input.device().type());
    const auto& record = kept_record<WeightRecord>(*context);
    at::Tensor grad_input = packed_input, activated = input_gradient(grads[0], weight);
    if (torch::autograd::get_current_graph_task_keep_graph()) {
      std::tie(grad_input, activated) = ops::swiglu_backward(activated, packed_input, /*with_output=*/true);
    } else {  // nothing reads packed_input after this
      ops::swiglu_backward_(grad_input, activated);
    }
    variable_list result{grad_input, {}};
    append(result, parameter_gradients(record.weight, record.dtype, grads[0], activated));
    return result;
  }
};

}  // namespace

NormLinearOutput norm_linear(const ResidualStream& x, const Norm& norm, PackedWeight& weight) {
  const auto pending = x.pending.defined() ? std::optional(x.pending) : std::nullopt;
  const variable_list outputs =
      NormLinear::apply(x.sum, pending, norm.weight, norm.eps, &weight, at::TensorList(weight.parameters()));
  return {outputs[1], outputs[0]};
}

at::Tensor packed_linear(const at::Tensor& x, PackedWeight& weight) {
  return PackedLinear::apply(x, &weight, at::TensorList(weight.parameters()));
}

at::Tensor swiglu_linear(const at::Tensor& packed, PackedWeight& weight) {
  return SwigluLinear::apply(packed, &weight, at::TensorList(weight.parameters()));
}

}  // namespace satformer::fused
