#include "csrc/ops/depth_weighted_sum_reference.h"
#include "csrc/ops/row_arguments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>

namespace satformer::ops {

at::Tensor inverse_rms_reference(const at::Tensor& x, double eps) {
  const at::Tensor a = x.to(accumulate_dtype(x));
  return at::rsqrt((a * a).mean(-1) + eps);
}

std::vector<at::Tensor> depth_weighted_sum_reference(const DepthSum& sum) {
  const at::ScalarType stored = sum.sources.at(0).scalar_type(), dtype = accumulate_dtype(stored);
  const at::Tensor weights = sum.weights.to(dtype);
  const std::int64_t ways = weights.size(-2);
  std::vector<at::Tensor> sums(ways);
  for (std::size_t j = 0; j < sum.sources.size(); ++j) {
    at::Tensor source = sum.sources[j].to(dtype);
    if (!sum.source_norm_weights.empty()) {
      source = source * sum.source_inverse_rms.at(j).to(dtype).unsqueeze(-1) * sum.source_norm_weights[j].to(dtype);
    }
    for (std::int64_t c = 0; c < ways; ++c) {
      const at::Tensor weight = weights.select(-2, c).select(-1, static_cast<std::int64_t>(j));
      const at::Tensor term = source * weight.unsqueeze(-1);
      sums[c] = sums[c].defined() ? sums[c] + term : term;
    }
  }
  for (std::int64_t c = 0; c < ways; ++c) {
    if (!sum.output_norm_weights.empty()) {
      const at::Tensor inverse = inverse_rms_reference(sums[c], sum.output_norm_eps);
      sums[c] = sums[c] * inverse.unsqueeze(-1) * sum.output_norm_weights.at(c).to(dtype);
    }
    if (sum.base) sums[c] = sums[c] + sum.base->to(dtype);
    sums[c] = sums[c].to(stored);
  }
  return sums;
}

}  // namespace satformer::ops
