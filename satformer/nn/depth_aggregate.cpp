#include "satformer/nn/depth_aggregate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "csrc/ops/depth_weighted_sum_reference.h"
#include "satformer/core/error.h"
#include "satformer/fused/depth_sum.h"
#include "satformer/fused/shared_gradient.h"
#include "satformer/runtime/compute_dtype.h"

namespace satformer::nn {
namespace {

std::vector<RMSNorm> make_norms(torch::nn::Module& parent, const char* name, std::int64_t count,
                                const RMSNormOptions& options, const at::TensorOptions& tensors) {
  const auto list = parent.register_module(name, std::make_shared<torch::nn::Module>());
  std::vector<RMSNorm> norms;
  for (std::int64_t i = 0; i < count; ++i) {
    norms.push_back(list->register_module(std::to_string(i), RMSNorm(options, tensors)));
  }
  return norms;
}

std::vector<at::Tensor> weights_of(const std::vector<RMSNorm>& norms) {
  std::vector<at::Tensor> weights;
  weights.reserve(norms.size());
  for (const RMSNorm& norm : norms) weights.push_back(norm->weight);
  return weights;
}

}  // namespace

std::vector<at::Tensor> sum_over_depth(const ops::DepthSum& sum, bool fused) {
  return fused ? fused::sum_over_depth(sum) : ops::depth_weighted_sum_reference(sum);
}

at::Tensor for_later_layers(const at::Tensor& x, bool fused) { return fused ? fused::fan_out(x) : x; }

void DepthHistory::add(const at::Tensor& x) {
  const at::Tensor& added = hidden_.emplace_back(for_later_layers(x, fused_));
  inverse_rms_.push_back(fused_ ? ops::inverse_rms(added, eps_) : ops::inverse_rms_reference(added, eps_));
}

DepthAggregateImpl::DepthAggregateImpl(const DepthAggregateOptions& options, const at::TensorOptions& tensors)
    : options_(options) {
  const std::int64_t d = options.hidden_size, l = options.num_sources, C = options.num_ways;
  w1 = register_module("w1", Linear(LinearOptions{d, C * l, /*bias=*/false, /*decays=*/false}, tensors));
  w2 = register_module("w2", Linear(LinearOptions{C * l, C * l, /*bias=*/false, /*decays=*/false}, tensors));
  static_weight = register_parameter("static_weight", at::zeros({C, l}, tensors));
  if (options.pre_post_norm) {
    const RMSNormOptions norm{d, options.norm_eps};
    pre_da_norms = make_norms(*this, "pre_da_norms", l, norm, tensors);
    post_da_norms = make_norms(*this, "post_da_norms", C, norm, tensors);
    const at::NoGradGuard no_grad;
    for (RMSNorm& post : post_da_norms) post->weight.fill_(1e-3);
  } else {
    const at::NoGradGuard no_grad;
    static_weight.slice(1, l - 1).fill_(1.0);
  }
}

// [B, T, C, l]
at::Tensor DepthAggregateImpl::weights(const DepthHistory& history) {
  const at::Tensor& x = history.hidden().back();
  const at::Tensor normalized = (x * history.inverse_rms().back().unsqueeze(-1)).to(compute_dtype(x));
  const at::Tensor dynamic = w2->forward(at::gelu(w1->forward(normalized)));
  return dynamic.unflatten(-1, {options_.num_ways, options_.num_sources}) + static_weight;
}

MuddInputs DepthAggregateImpl::forward(const DepthHistory& history, const LayerContext& context) {
  require(static_cast<std::int64_t>(history.hidden().size()) == options_.num_sources,
          "depth aggregate: expected {} sources, got {}", options_.num_sources, history.hidden().size());
  ops::DepthSum sum;
  sum.sources = history.hidden();
  sum.weights = weights(history);
  if (context.observer != nullptr) context.observer->depth_weights(context.layer, {.weights = sum.weights});
  if (options_.pre_post_norm) {
    sum.base = history.hidden().back();
    sum.source_norm_weights = weights_of(pre_da_norms);
    sum.source_inverse_rms = history.inverse_rms();
    sum.output_norm_weights = weights_of(post_da_norms);
    sum.output_norm_eps = options_.norm_eps;
  }
  const std::vector<at::Tensor> streams = sum_over_depth(sum, context.fused);
  if (streams.size() == 1) return {.q = {}, .k = {}, .v = {}, .r = streams[0]};
  return {streams[0], streams[1], streams[2], streams[3]};
}

}  // namespace satformer::nn
