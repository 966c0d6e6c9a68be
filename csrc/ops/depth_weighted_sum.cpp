#include "csrc/ops/depth_weighted_sum.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <string>

#include "csrc/ops/depth_weighted_sum_calls.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  // torch.compile cannot functionalise an operator that writes to its arguments and returns lists.
  const std::vector<at::Tag> eager_tags{at::Tag::needs_exact_strides};
  const std::string sum =
      "Tensor[] sources, Tensor weights, Tensor? base, Tensor[] source_norm_weights, Tensor[] source_inverse_rms, "
      "Tensor[] output_norm_weights, float output_norm_eps";
  const std::string gradients = "(Tensor[], Tensor, Tensor, Tensor[], Tensor[], Tensor[])";
  const auto define = [&](const std::string& schema) { library.def(schema.c_str(), tags); };
  define("depth_weighted_sum(" + sum + ") -> Tensor[]");
  define("depth_weighted_sum_backward(Tensor[] grads, " + sum + ", bool[6] output_mask) -> " + gradients);
  const std::string backward_add = "depth_weighted_sum_backward_(Tensor(a!)[] grad_sources, Tensor[] grads, " + sum +
                                   ", bool[6] output_mask) -> " + gradients;
  library.def(backward_add.c_str(), eager_tags);
  define("inverse_rms(Tensor x, float eps) -> Tensor");
  define("inverse_rms_backward(Tensor grad, Tensor x, Tensor inverse) -> Tensor");
}

namespace satformer::ops {
namespace {

template <typename Signature>
c10::TypedOperatorHandle<Signature> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

DepthSumGradients fields(DepthGradientTuple&& gradients) {
  auto& [sources, weights, base, source_norm_weights, source_inverse_rms, output_norm_weights] = gradients;
  return {std::move(sources),
          std::move(weights),
          std::move(base),
          std::move(source_norm_weights),
          std::move(source_inverse_rms),
          std::move(output_norm_weights)};
}

}  // namespace

const c10::TypedOperatorHandle<DepthSumSignature>& depth_sum_operator() {
  static const auto handle = find<DepthSumSignature>("satformer::depth_weighted_sum");
  return handle;
}
const c10::TypedOperatorHandle<DepthSumBackwardSignature>& depth_sum_backward_operator() {
  static const auto handle = find<DepthSumBackwardSignature>("satformer::depth_weighted_sum_backward");
  return handle;
}
const c10::TypedOperatorHandle<DepthSumBackwardAddSignature>& depth_sum_backward_add_operator() {
  static const auto handle = find<DepthSumBackwardAddSignature>("satformer::depth_weighted_sum_backward_");
  return handle;
}
const c10::TypedOperatorHandle<InverseRmsSignature>& inverse_rms_operator() {
  static const auto handle = find<InverseRmsSignature>("satformer::inverse_rms");
  return handle;
}
const c10::TypedOperatorHandle<InverseRmsBackwardSignature>& inverse_rms_backward_operator() {
  static const auto handle = find<InverseRmsBackwardSignature>("satformer::inverse_rms_backward");
  return handle;
}

std::vector<at::Tensor> depth_weighted_sum(const DepthSum& sum) {
  return depth_sum_operator().call(sum.sources, sum.weights, sum.base, sum.source_norm_weights, sum.source_inverse_rms,
                                   sum.output_norm_weights, sum.output_norm_eps);
}

DepthSumGradients depth_weighted_sum_backward(const std::vector<at::Tensor>& grads, const DepthSum& sum,
                                              const DepthSumMask& mask) {
  return fields(depth_sum_backward_operator().call(grads, sum.sources, sum.weights, sum.base, sum.source_norm_weights,
                                                   sum.source_inverse_rms, sum.output_norm_weights, sum.output_norm_eps,
                                                   mask));
}

DepthSumGradients depth_weighted_sum_backward_(std::vector<at::Tensor>& grad_sources,
                                               const std::vector<at::Tensor>& grads, const DepthSum& sum,
                                               const DepthSumMask& mask) {
  return fields(depth_sum_backward_add_operator().call(grad_sources, grads, sum.sources, sum.weights, sum.base,
                                                       sum.source_norm_weights, sum.source_inverse_rms,
                                                       sum.output_norm_weights, sum.output_norm_eps, mask));
}

at::Tensor inverse_rms(const at::Tensor& x, double eps) { return inverse_rms_operator().call(x, eps); }

}  // namespace satformer::ops
