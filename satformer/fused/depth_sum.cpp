#include "satformer/fused/depth_sum.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>

#include "satformer/fused/autograd_record.h"
#include "satformer/fused/shared_gradient.h"

namespace satformer::fused {
namespace {

using Buffers = std::vector<c10::intrusive_ptr<SharedGradient>>;
constexpr std::size_t kFields = 6;  // of DepthSum that are tensors, in the order of ops::DepthSumMask

// The fields' numbers of tensors, and what is no tensor.
struct DepthSumRecord : torch::CustomClassHolder {
  DepthSumRecord(const DepthSum& sum, Buffers buffers)
      : counts{sum.sources.size(),
               1,
               sum.base ? 1U : 0U,
               sum.source_norm_weights.size(),
               sum.source_inverse_rms.size(),
               sum.output_norm_weights.size()},
        output_norm_eps(sum.output_norm_eps),
        buffers(std::move(buffers)) {}
  std::array<std::size_t, kFields> counts;
  double output_norm_eps;
  Buffers buffers;  // one a source
};

void extend(variable_list& to, const std::vector<at::Tensor>& from) { to.insert(to.end(), from.begin(), from.end()); }

variable_list flat(const DepthSum& sum) {
  variable_list tensors = sum.sources;
  tensors.push_back(sum.weights);
  if (sum.base) tensors.push_back(*sum.base);
  extend(tensors, sum.source_norm_weights);
  extend(tensors, sum.source_inverse_rms);
  extend(tensors, sum.output_norm_weights);
  return tensors;
}

DepthSum restored(const DepthSumRecord& record, const variable_list& tensors) {
  auto next = tensors.begin();
  std::array<variable_list, kFields> fields;
  for (std::size_t i = 0; i < kFields; ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(record.counts[i]);
    fields[i].assign(next, end);
    next = end;
  }
  return {.sources = fields[0],
          .weights = fields[1].front(),
          .base = fields[2].empty() ? std::nullopt : std::optional(fields[2].front()),
          .source_norm_weights = fields[3],
          .source_inverse_rms = fields[4],
          .output_norm_weights = fields[5],
          .output_norm_eps = record.output_norm_eps};
}

struct SharedDepthSum : torch::autograd::Function<SharedDepthSum> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<DepthSumRecord>& record,
                               at::TensorList tensors) {
    keep_record(*context, record);
    context->save_for_backward(tensors.vec());
    return ops::depth_weighted_sum(restored(*record, tensors.vec()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    refuse_second_derivatives("depth_weighted_sum");
    const auto& record = kept_record<DepthSumRecord>(*context);
    const DepthSum sum = restored(record, context->get_saved_variables());
    ops::DepthSumMask mask{};
    std::size_t edge = 0;
    for (std::size_t field = 0; field < kFields; ++field) {
      for (std::size_t i = 0; i < record.counts[field]; ++i) {
        mask[field] = context->needs_input_grad(edge++) || mask[field];
      }
    }
    std::vector<at::Tensor> buffers = source_buffers(*context, record, sum);
    const ops::DepthSumGradients found = ops::depth_weighted_sum_backward_(buffers, grads, sum, mask);
    variable_list result(1 + record.counts[0]);  // the record, and the sources: theirs are in the buffers
    result.push_back(found.weights);
    if (sum.base) result.push_back(found.base);
    append_gradients(result, found.source_norm_weights, record.counts[3]);
    append_gradients(result, found.source_inverse_rms, record.counts[4]);
    append_gradients(result, found.output_norm_weights, record.counts[5]);
    return result;
  }

 private:
  // A source that this backward pass does not reach would never be asked for what is in its buffer.
  static std::vector<at::Tensor> source_buffers(const AutogradContext& context, const DepthSumRecord& record,
                                                const DepthSum& sum) {
    std::vector<at::Tensor> buffers;
    for (std::size_t j = 0; j < sum.sources.size(); ++j) {
      const at::Tensor& source = sum.sources[j];
      buffers.push_back(context.needs_input_grad(j) ? record.buffers[j]->sum(source, source.scalar_type())
                                                    : at::zeros_like(source));
    }
    return buffers;
  }

  static void append_gradients(variable_list& to, const std::vector<at::Tensor>& gradients, std::size_t count) {
    extend(to, gradients);
    to.resize(to.size() + count - gradients.size());  // none are wanted where there are none
  }
};

}  // namespace

std::vector<at::Tensor> sum_over_depth(const DepthSum& sum) {
  Buffers buffers;
  for (const at::Tensor& source : sum.sources) buffers.push_back(shared_gradient(source));
  const bool shared = std::all_of(buffers.begin(), buffers.end(), [](const auto& buffer) { return bool(buffer); });
  if (!shared || !at::GradMode::is_enabled()) return ops::depth_weighted_sum(sum);
  const variable_list tensors = flat(sum);
  return SharedDepthSum::apply(c10::make_intrusive<DepthSumRecord>(sum, std::move(buffers)), at::TensorList(tensors));
}

}  // namespace satformer::fused
