#include "satformer/fused/attention.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <tuple>

#include "satformer/fused/attention_documents.h"
#include "satformer/fused/attention_libtorch.h"
#include "satformer/fused/attention_ours.h"
#include "satformer/fused/autograd_record.h"
#include "satformer/fused/no_autocast.h"
#include "satformer/fused/shared_gradient.h"

namespace satformer::fused {
namespace {

using ops::MixInputs;
using ops::MixOutputs;

// [B, T, heads, hd], columns [first, first + heads hd) of x.
at::Tensor heads_of(const at::Tensor& x, std::int64_t first, std::int64_t heads, std::int64_t head_dim) {
  return x.narrow(-1, first, heads * head_dim).unflatten(-1, {heads, head_dim});
}

// Where the values begin in the last projection.
std::int64_t value_column(const AttentionCall& call) {
  return call.projected.size() == 1 ? (call.num_heads + call.num_kv_heads) * call.head_dim : 0;
}

at::Tensor raw_values(const AttentionCall& call) {
  return heads_of(call.projected.back(), value_column(call), call.num_kv_heads, call.head_dim);
}

// Sets q, k, v and logits of `inputs`: views of `projected`, laid out as the call's.
void view_projections(const std::vector<at::Tensor>& projected, const AttentionCall& call, MixInputs& inputs) {
  const bool packed = projected.size() == 1;
  const std::int64_t hd = call.head_dim, H = call.num_heads, H_kv = call.num_kv_heads;
  const at::Tensor& values = projected.back();
  inputs.q = heads_of(projected.front(), 0, H, hd);
  inputs.k = heads_of(packed ? values : projected[1], packed ? H * hd : 0, H_kv, hd);
  inputs.v = heads_of(values, value_column(call), H_kv, hd);
  inputs.logits = call.selective ? values.narrow(-1, value_column(call) + H_kv * hd, H_kv) : at::Tensor();
}

// The tensors of a mix that may be absent and have gradients, in the order of ops::MixGradients.
template <typename Mix>
auto optional_tensors(Mix& mix) {
  return std::array{&mix.q_weight, &mix.k_weight, &mix.first_values, &mix.lambda1, &mix.lambda2};
}

// Everything of a call but the tensors that have gradients.
struct CallRecord : torch::CustomClassHolder {
  explicit CallRecord(const AttentionCall& given)
      : call(given), num_projected(given.projected.size()), present(presence_of(optional_tensors(given.mix))) {
    call.projected.clear();
    for (at::Tensor* tensor : optional_tensors(call.mix)) *tensor = at::Tensor();
    if (given.mix.first_values.defined()) first_values_gradient = shared_gradient(given.mix.first_values);
  }

  // The position of first_values among differentiable().
  std::size_t first_values_edge() const { return num_projected + (present[0] ? 1 : 0) + (present[1] ? 1 : 0); }

  AttentionCall call;
  std::size_t num_projected;
  std::vector<bool> present;
  c10::intrusive_ptr<SharedGradient> first_values_gradient;  // null: it is returned
};

// The tensors that have gradients, in the order of the node's inputs: the projections and what is present of the rest.
variable_list differentiable(const AttentionCall& call) {
  variable_list result = call.projected;
  append_present(result, optional_tensors(call.mix));
  return result;
}

AttentionCall restored(const CallRecord& record, const variable_list& tensors) {
  AttentionCall call = record.call;
  const auto rest = tensors.begin() + static_cast<std::ptrdiff_t>(record.num_projected);
  call.projected.assign(tensors.begin(), rest);
  restore_present(optional_tensors(call.mix), record.present, rest);
  call.mix = mix_inputs(call);
  return call;
}

// Where qk_norm_rope_mix's backward pass writes: `slices` are views of the projections' gradients.
ops::MixGradientTargets targets_of(const CallRecord& record, const MixInputs& slices, const MixInputs& inputs,
                                   bool with_first_values) {
  ops::MixGradientTargets targets{
      .q = slices.q, .k = slices.k, .v = slices.v, .logits = slices.logits, .first_values = {}};
  if (with_first_values && record.first_values_gradient) {
    const at::Tensor& values = inputs.first_values;
    targets.first_values = record.first_values_gradient->sum(values, at::toOpMathType(values.scalar_type()));
  }
  return targets;
}

// The gradients of differentiable(call), after that of the record, from those of what attention read and, where
// defined, of the raw values.
variable_list input_gradients(const AutogradContext& context, const CallRecord& record, const AttentionCall& call,
                              const MixOutputs& grads, const at::Tensor& grad_values) {
  variable_list projected;
  for (const at::Tensor& x : call.projected) projected.push_back(at::empty_like(x));
  MixInputs slices;
  view_projections(projected, call, slices);
  const MixInputs& inputs = call.mix;
  const bool with_first_values = inputs.first_values.defined() && context.needs_input_grad(record.first_values_edge());
  const std::array<bool, 5> wanted{inputs.q_weight.defined(), inputs.k_weight.defined(), with_first_values,
                                   inputs.lambda1.defined() && inputs.lambda1.requires_grad(),
                                   inputs.lambda2.defined() && inputs.lambda2.requires_grad()};
  const ops::MixGradients rest =
      ops::qk_norm_rope_mix_backward(inputs, grads, targets_of(record, slices, inputs, with_first_values), wanted);
  if (grad_values.defined()) slices.v.add_(grad_values);
  variable_list result{{}};
  result.insert(result.end(), projected.begin(), projected.end());
  const std::array gradients{rest.q_weight, rest.k_weight, rest.first_values, rest.lambda1, rest.lambda2};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (record.present[i]) result.push_back(gradients[i]);
  }
  return result;
}

// On the CPU, the backend included. Kept: the projections, what the mix reads, the output and a number a query.
struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<CallRecord>& record,
                               at::TensorList tensors) {
    const NoAutocast no_autocast(at::kCPU);
    const AttentionCall call = restored(*record, tensors.vec());
    const auto [output, logsumexp] = attend(call, ops::qk_norm_rope_mix(call.mix));
    const at::Tensor attended = output.flatten(-2);
    keep_record(*context, record);
    context->set_materialize_grads(false);
    variable_list saved = tensors.vec();
    saved.insert(saved.end(), {attended, logsumexp});
    context->save_for_backward(saved);
    if (!call.returns_values) return {attended};
    // Later layers keep the raw values in any case: a view of the projections is no further memory.
    const at::AutoDispatchBelowADInplaceOrView below;
    return {attended, raw_values(call)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivatives("attention");
    const auto& record = kept_record<CallRecord>(*context);
    const variable_list saved = context->get_saved_variables();
    const AttentionCall call = restored(record, saved);
    const NoAutocast no_autocast(at::kCPU);
    const at::Tensor &attended = saved[saved.size() - 2], &logsumexp = saved.back();
    const MixOutputs operands = ops::qk_norm_rope_mix(call.mix);
    const MixOutputs operand_grads =
        grads[0].defined()
            ? attend_backward(call, split_heads(call, grads[0]), operands, split_heads(call, attended), logsumexp)
            : MixOutputs{at::zeros_like(operands.q), at::zeros_like(operands.k), at::zeros_like(operands.v)};
    return input_gradients(*context, record, call, operand_grads, grads.size() > 1 ? grads[1] : at::Tensor());
  }

 private:
  static bool takes_ours(const AttentionCall& call, const at::Tensor& q) {
    return !call.context.mask.defined() && (q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble);
  }
  static std::tuple<at::Tensor, at::Tensor> attend(const AttentionCall& call, const MixOutputs& in) {
    return takes_ours(call, in.q) ? ours::attend(in) : libtorch::attend_cpu(in, call.context.mask);
  }
  static MixOutputs attend_backward(const AttentionCall& call, const at::Tensor& grad, const MixOutputs& in,
                                    const at::Tensor& output, const at::Tensor& logsumexp) {
    return takes_ours(call, in.q) ? ours::attend_backward(grad, in, output, logsumexp)
                                  : libtorch::attend_cpu_backward(grad, in, output, logsumexp, call.context.mask);
  }
  // [B, T, H hd] -> [B, T, H, hd]
  static at::Tensor split_heads(const AttentionCall& call, const at::Tensor& x) {
    return x.unflatten(-1, {call.num_heads, call.head_dim});
  }
};

// Elsewhere: what attention reads, and with returns_values the raw values. The backend is autograd's own.
struct Operands : torch::autograd::Function<Operands> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<CallRecord>& record,
                               at::TensorList tensors) {
    AttentionCall call = restored(*record, tensors.vec());
    const NoAutocast no_autocast(call.mix.q.device().type());
    call.mix.copy_values = true;
    const MixOutputs operands = ops::qk_norm_rope_mix(call.mix);
    keep_record(*context, record);
    context->save_for_backward(tensors.vec());
    variable_list outputs{operands.q, operands.k, operands.v};
    if (call.returns_values) outputs.push_back(call.mix.v.clone());
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivatives("attention");
    const auto& record = kept_record<CallRecord>(*context);
    const AttentionCall call = restored(record, context->get_saved_variables());
    const NoAutocast no_autocast(call.mix.q.device().type());
    return input_gradients(*context, record, call, {grads[0], grads[1], grads[2]},
                           grads.size() > 3 ? grads[3] : at::Tensor());
  }
};

AttentionResult attend_elsewhere(const AttentionCall& call, const c10::intrusive_ptr<CallRecord>& record,
                                 const variable_list& tensors) {
  const variable_list outputs = Operands::apply(record, at::TensorList(tensors));
  const MixOutputs operands{outputs[0], outputs[1], outputs[2]};
  const at::Tensor attended = call.context.documents
                                  ? attend_documents(operands, *call.context.documents, call.context.window_size)
                                  : libtorch::attend(operands, call.context.mask);
  return {attended.flatten(-2), call.returns_values ? outputs[3] : at::Tensor()};
}

}  // namespace

MixInputs mix_inputs(const AttentionCall& call) {
  MixInputs inputs = call.mix;
  inputs.cos = call.context.rotary.cos;
  inputs.sin = call.context.rotary.sin;
  view_projections(call.projected, call, inputs);
  return inputs;
}

AttentionResult attention(const AttentionCall& call) {
  const auto record = c10::make_intrusive<CallRecord>(call);
  const variable_list tensors = differentiable(call);
  if (!call.projected.front().is_cpu()) return attend_elsewhere(call, record, tensors);
  const variable_list outputs = CpuAttention::apply(record, at::TensorList(tensors));
  return {outputs[0], call.returns_values ? outputs[1] : at::Tensor()};
}

}  // namespace satformer::fused
