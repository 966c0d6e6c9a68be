#include "satformer/fused/attention_core.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>

#include "csrc/ops/causal_attention.h"
#include "satformer/core/error.h"
#include "satformer/fused/no_autocast.h"
#include "satformer/fused/shared_gradient.h"

namespace satformer::nn {
namespace {

using ops::MixInputs;
using ops::MixOutputs;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [B, T, heads, hd], columns [first, first + heads hd) of x.
at::Tensor heads_of(const at::Tensor& x, std::int64_t first, std::int64_t heads, std::int64_t head_dim) {
  return x.narrow(-1, first, heads * head_dim).unflatten(-1, {heads, head_dim});
}

// The tensors that may be absent, of a core's inputs.
template <typename Inputs>
auto optional_tensors(Inputs& inputs) {
  return std::array{&inputs.q_weight, &inputs.k_weight, &inputs.first_values, &inputs.lambda1, &inputs.lambda2};
}

// Everything of a core but the tensors that have gradients.
struct CoreRecord : torch::CustomClassHolder {
  explicit CoreRecord(const AttentionCore& given) : core(given), num_projected(given.projected.size()) {
    core.projected.clear();
    core.inputs.q = at::Tensor();
    core.inputs.q_weight = core.inputs.k_weight = core.inputs.first_values = at::Tensor();
    core.inputs.lambda1 = core.inputs.lambda2 = at::Tensor();
    const auto optional = optional_tensors(given.inputs);
    for (std::size_t i = 0; i < optional.size(); ++i) present[i] = optional[i]->defined();
    if (given.inputs.first_values.defined()) first_values_gradient = shared_gradient(given.inputs.first_values);
  }

  // The place of first_values among differentiable().
  std::size_t first_values_edge() const { return num_projected + (present[0] ? 1 : 0) + (present[1] ? 1 : 0); }

  AttentionCore core;
  std::size_t num_projected;
  std::array<bool, 5> present{};
  c10::intrusive_ptr<SharedGradient> first_values_gradient;  // null: it is returned
};

// The tensors that have gradients, in the order of the functions' inputs: the projections and what is present of the
// rest. (An autograd function takes no undefined tensors.)
variable_list differentiable(const AttentionCore& core) {
  variable_list result = core.projected;
  for (const at::Tensor* tensor : optional_tensors(core.inputs)) {
    if (tensor->defined()) result.push_back(*tensor);
  }
  return result;
}

AttentionCore restored(const CoreRecord& record, const variable_list& tensors) {
  AttentionCore core = record.core;
  auto next = tensors.begin() + static_cast<std::ptrdiff_t>(record.num_projected);
  core.projected.assign(tensors.begin(), next);
  const auto optional = optional_tensors(core.inputs);
  for (std::size_t i = 0; i < optional.size(); ++i) {
    if (record.present[i]) *optional[i] = *next++;
  }
  view_projections(core.projected, core, core.inputs);
  return core;
}

// The gradients of differentiable(core) from those of what attention read and, where defined, of the raw values.
variable_list input_gradients(const AutogradContext& context, const CoreRecord& record, const AttentionCore& core,
                              const MixOutputs& grads, const at::Tensor& grad_values) {
  variable_list projected;
  for (const at::Tensor& x : core.projected) projected.push_back(at::empty_like(x));
  MixInputs slices;
  view_projections(projected, core, slices);
  const MixInputs& inputs = core.inputs;
  const bool with_first_values = inputs.first_values.defined() && context.needs_input_grad(record.first_values_edge());
  const std::array<bool, 5> wanted{inputs.q_weight.defined(), inputs.k_weight.defined(), with_first_values,
                                   inputs.lambda1.defined() && inputs.lambda1.requires_grad(),
                                   inputs.lambda2.defined() && inputs.lambda2.requires_grad()};
  ops::MixGradientTargets targets{
      .q = slices.q, .k = slices.k, .v = slices.v, .logits = slices.logits, .first_values = {}};
  if (with_first_values && record.first_values_gradient) {
    const at::Tensor& values = inputs.first_values;
    targets.first_values = record.first_values_gradient->sum(values, at::toOpMathType(values.scalar_type()));
  }
  const ops::MixGradients rest = ops::qk_norm_rope_mix_backward(inputs, grads, targets, wanted);
  if (grad_values.defined()) slices.v.add_(grad_values);
  const auto optional = optional_tensors(inputs);
  const std::array gradients{rest.q_weight, rest.k_weight, rest.first_values, rest.lambda1, rest.lambda2};
  for (std::size_t i = 0; i < optional.size(); ++i) {
    if (optional[i]->defined()) projected.push_back(gradients[i]);
  }
  return projected;
}

// On the CPU, attention included. Kept: the projections, what the mix reads, the output and a number a query.
struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<CoreRecord>& record,
                               at::TensorList tensors) {
    const NoAutocast no_autocast(at::kCPU);
    const AttentionCore core = restored(*record, tensors.vec());
    const auto [output, logsumexp] = attend(core, ops::qk_norm_rope_mix(core.inputs));
    const at::Tensor attended = output.flatten(-2);
    context->saved_data["record"] = c10::IValue::make_capsule(record);
    context->set_materialize_grads(false);
    variable_list saved = tensors.vec();
    saved.insert(saved.end(), {attended, logsumexp});
    context->save_for_backward(saved);
    if (!core.returns_values) return {attended};
    // Later layers keep the raw values in any case: a view of the projections is no further memory.
    const at::AutoDispatchBelowADInplaceOrView below;
    return {attended, heads_of(core.projected.back(), value_column(core), core.num_kv_heads, core.head_dim)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require(!at::GradMode::is_enabled(), "attention: second derivatives are not implemented");
    const auto capsule = context->saved_data["record"].toCapsule();
    const auto& record = static_cast<const CoreRecord&>(*capsule);
    const variable_list saved = context->get_saved_variables();
    const AttentionCore core = restored(record, saved);
    const NoAutocast no_autocast(at::kCPU);
    const at::Tensor &attended = saved[saved.size() - 2], &logsumexp = saved.back();
    const MixOutputs operands = ops::qk_norm_rope_mix(core.inputs);
    const MixOutputs operand_grads =
        grads[0].defined()
            ? attend_backward(core, operands, split_heads(core, grads[0]), split_heads(core, attended), logsumexp)
            : MixOutputs{at::zeros_like(operands.q), at::zeros_like(operands.k), at::zeros_like(operands.v)};
    variable_list result{{}};
    const variable_list gradients =
        input_gradients(*context, record, core, operand_grads, grads.size() > 1 ? grads[1] : at::Tensor());
    result.insert(result.end(), gradients.begin(), gradients.end());
    return result;
  }

 private:
  // Ours is the faster one where it applies. LibTorch's knows masks, and the processor's own bfloat16 products.
  static bool ours(const AttentionCore& core, const at::Tensor& q) {
    return !core.mask.defined() && (q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble);
  }
  static std::optional<at::Tensor> optional_mask(const AttentionCore& core) {
    return core.mask.defined() ? std::optional(core.mask) : std::nullopt;
  }

  // The output [B, T, H, hd] and what the backward pass reads beside it.
  static std::tuple<at::Tensor, at::Tensor> attend(const AttentionCore& core, const MixOutputs& in) {
    if (ours(core, in.q)) return ops::causal_attention(in.q, in.k, in.v);
    if (in.q.numel() == 0) return {in.q, in.q};  // LibTorch's kernel divides by the sizes
    auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
        in.q.transpose(1, 2), in.k.transpose(1, 2), in.v.transpose(1, 2), /*dropout_p=*/0,
        /*is_causal=*/!core.mask.defined(), optional_mask(core));
    return {output.transpose(1, 2), logsumexp};
  }

  static MixOutputs attend_backward(const AttentionCore& core, const MixOutputs& in, const at::Tensor& grad,
                                    const at::Tensor& output, const at::Tensor& logsumexp) {
    if (ours(core, in.q)) {
      const auto [q, k, v] = ops::causal_attention_backward(grad, in.q, in.k, in.v, output, logsumexp);
      return {q, k, v};
    }
    if (in.q.numel() == 0) return {in.q, in.k, in.v};
    const auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        grad.transpose(1, 2), in.q.transpose(1, 2), in.k.transpose(1, 2), in.v.transpose(1, 2), output.transpose(1, 2),
        logsumexp, /*dropout_p=*/0, /*is_causal=*/!core.mask.defined(), optional_mask(core));
    return {q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)};
  }

  // [B, T, H hd] -> [B, T, H, hd]
  static at::Tensor split_heads(const AttentionCore& core, const at::Tensor& x) {
    return x.unflatten(-1, {core.num_heads, core.head_dim});
  }
  static std::int64_t value_column(const AttentionCore& core) {
    return core.projected.size() == 1 ? (core.num_heads + core.num_kv_heads) * core.head_dim : 0;
  }
};

// Elsewhere: what attention reads, and with returns_values the raw values; attention itself is autograd's.
struct Operands : torch::autograd::Function<Operands> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<CoreRecord>& record,
                               at::TensorList tensors) {
    AttentionCore core = restored(*record, tensors.vec());
    const NoAutocast no_autocast(core.inputs.q.device().type());
    core.inputs.copy_values = true;
    const MixOutputs operands = ops::qk_norm_rope_mix(core.inputs);
    context->saved_data["record"] = c10::IValue::make_capsule(record);
    context->save_for_backward(tensors.vec());
    variable_list outputs{operands.q, operands.k, operands.v};
    if (core.returns_values) outputs.push_back(core.inputs.v.clone());
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require(!at::GradMode::is_enabled(), "attention: second derivatives are not implemented");
    const auto capsule = context->saved_data["record"].toCapsule();
    const auto& record = static_cast<const CoreRecord&>(*capsule);
    const AttentionCore core = restored(record, context->get_saved_variables());
    const NoAutocast no_autocast(core.inputs.q.device().type());
    variable_list result{{}};
    const variable_list gradients = input_gradients(*context, record, core, {grads[0], grads[1], grads[2]},
                                                    grads.size() > 3 ? grads[3] : at::Tensor());
    result.insert(result.end(), gradients.begin(), gradients.end());
    return result;
  }
};

// Each document for itself: [B, T, H, hd] -> [B, T, H hd].
at::Tensor attend_in_documents(const AttentionCore& core, const variable_list& operands) {
  const auto tokens = [&](std::size_t i) { return operands[i].flatten(0, 1); };
  const std::optional<std::int64_t> left =
      core.window_size ? std::optional(*core.window_size - 1) : std::optional<std::int64_t>();
  const std::int64_t longest = core.documents->longest;
  const at::Tensor attended =
      std::get<0>(at::_flash_attention_forward(tokens(0), tokens(1), tokens(2), core.documents->offsets,
                                               core.documents->offsets, longest, longest, /*dropout_p=*/0,
                                               /*is_causal=*/true, /*return_debug_mask=*/false, /*scale=*/{}, left));
  return attended.view(operands[0].sizes()).flatten(-2);
}

AttentionCoreOutput attend_elsewhere(const AttentionCore& core, const c10::intrusive_ptr<CoreRecord>& record,
                                     const variable_list& tensors) {
  const variable_list operands = Operands::apply(record, at::TensorList(tensors));
  const at::Tensor values = core.returns_values ? operands[3] : at::Tensor();
  if (core.documents) return {attend_in_documents(core, operands), values};
  const std::optional<at::Tensor> bias = core.mask.defined() ? std::optional(core.mask) : std::nullopt;
  const at::Tensor attended = at::scaled_dot_product_attention(
      operands[0].transpose(1, 2), operands[1].transpose(1, 2), operands[2].transpose(1, 2), bias, /*dropout_p=*/0,
      /*is_causal=*/!bias, /*scale=*/std::nullopt, core.num_heads != core.num_kv_heads);
  return {attended.transpose(1, 2).flatten(-2), values};
}

}  // namespace

void view_projections(const std::vector<at::Tensor>& projected, const AttentionCore& core, MixInputs& inputs) {
  const bool packed = projected.size() == 1;
  const std::int64_t hd = core.head_dim, H = core.num_heads, H_kv = core.num_kv_heads;
  const at::Tensor& values = projected.back();
  const std::int64_t value_column = packed ? (H + H_kv) * hd : 0;
  inputs.q = heads_of(projected.front(), 0, H, hd);
  inputs.k = heads_of(packed ? values : projected[1], packed ? H * hd : 0, H_kv, hd);
  inputs.v = heads_of(values, value_column, H_kv, hd);
  inputs.logits = core.selective ? values.narrow(-1, value_column + H_kv * hd, H_kv) : at::Tensor();
}

AttentionCoreOutput attention_core(const AttentionCore& core) {
  const auto record = c10::make_intrusive<CoreRecord>(core);
  const variable_list tensors = differentiable(core);
  if (!core.projected.front().is_cpu()) return attend_elsewhere(core, record, tensors);
  const variable_list outputs = CpuAttention::apply(record, at::TensorList(tensors));
  return {outputs[0], core.returns_values ? outputs[1] : at::Tensor()};
}

}  // namespace satformer::nn
