#include "satformer/fused/hyper_connection.h"

#include <array>
#include <utility>
#include <vector>

#include "satformer/fused/autograd_record.h"

namespace satformer::fused {
namespace {

std::array<const std::optional<at::Tensor>*, 6> optional_parameters(const ops::HyperConnection& p) {
  return {&p.norm_weight,       &p.norm_bias,           &p.dynamic_alpha_proj,
          &p.dynamic_beta_proj, &p.dynamic_alpha_scale, &p.dynamic_beta_scale};
}

struct ConnectionsRecord : torch::CustomClassHolder {
  ConnectionsRecord(ops::HyperConnection first, ops::HyperConnection second)
      : first(std::move(first)), second(std::move(second)) {}
  ops::HyperConnection first, second;
};

// Inputs: mixed and beta of the first read, the module's output, the first read's streams (without gradient), the
// second connection's parameters. Outputs: the second read.
struct WriteAndRead : torch::autograd::Function<WriteAndRead> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<ConnectionsRecord>& record,
                               at::TensorList tensors) {
    const at::Tensor &beta = tensors[1], &output = tensors[2], &before = tensors[3];
    at::Tensor residual_streams = tensors[0].detach();  // no one reads mixed after this
    ops::hyper_connection_write_(residual_streams, beta, output);
    ops::HyperConnectionRead read = ops::hyper_connection_read(residual_streams, record->second);
    keep_record(*context, record);
    context->save_for_backward({beta, output, before, read.kept});
    context->mark_non_differentiable({read.kept});
    return {read.input, read.mixed, read.beta, read.kept};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivatives("hyper-connection");
    const auto& record = kept_record<ConnectionsRecord>(*context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &beta = saved[0], &output = saved[1];
    at::Tensor residual_streams = ops::hyper_connection_read(saved[2], record.first).mixed;
    ops::hyper_connection_write_(residual_streams, beta, output);
    const ops::HyperConnectionGradients found = ops::hyper_connection_read_backward(
        {grads[0], grads[1], grads[2], {}}, residual_streams, record.second, saved[3]);
    const auto [grad_beta, grad_output] = ops::hyper_connection_write_backward(found.streams, beta, output);
    variable_list result{{}, found.streams, grad_beta, grad_output, {}, found.static_alpha, found.static_beta};
    const std::array gradients{found.norm_weight,       found.norm_bias,           found.dynamic_alpha_proj,
                               found.dynamic_beta_proj, found.dynamic_alpha_scale, found.dynamic_beta_scale};
    const std::vector<bool> present = presence_of(optional_parameters(record.second));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (present[i]) result.push_back(gradients[i]);
    }
    return result;
  }
};

}  // namespace

ops::HyperConnectionRead write_and_read(HyperConnectionUse& use, const at::Tensor& output,
                                        const ops::HyperConnection& next) {
  variable_list tensors{use.read.mixed,    use.read.beta,   output, use.residual_streams.detach(),
                        next.static_alpha, next.static_beta};
  append_present(tensors, optional_parameters(next));
  const auto record = c10::make_intrusive<ConnectionsRecord>(use.parameters, next);
  const variable_list read = WriteAndRead::apply(record, at::TensorList(tensors));
  use.read.mixed = at::Tensor();
  return {read[0], read[1], read[2], read[3]};
}

}  // namespace satformer::fused
