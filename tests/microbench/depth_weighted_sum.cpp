// depth_weighted_sum at the sizes of a model's middle: DenseFormer's static sum, MUDDFormer's four ways per token with
// norms; inverse_rms. Tokens [4, 256], hidden size 256, nine sources.
#include "csrc/ops/depth_weighted_sum.h"

#include "csrc/ops/depth_weighted_sum_reference.h"
#include "tests/microbench/comparison.h"

namespace satformer::microbench {
namespace {

constexpr std::int64_t kB = 4, kT = 256, kD = 256;
constexpr std::ptrdiff_t kSources = 9, kWays = 4;
constexpr double kEps = 1e-6;

// The first tensors are the sources; then the weights; with norms the sources' weights, their inverses, the ways'.
ops::DepthSum sum_of(const Tensors& in, bool norms) {
  auto take = [it = in.begin()](std::ptrdiff_t count) mutable {
    const auto begin = it;
    it += count;
    return Tensors(begin, it);
  };
  ops::DepthSum sum;
  sum.sources = take(kSources);
  sum.weights = take(1)[0];
  sum.output_norm_eps = kEps;
  if (!norms) return sum;
  sum.source_norm_weights = take(kSources);
  sum.source_inverse_rms = take(kSources);
  sum.output_norm_weights = take(kWays);
  return sum;
}

Tensors make_inputs(bool norms, at::ScalarType dtype) {
  Tensors in;
  const auto add = [&](std::ptrdiff_t count, const auto& make) {
    for (std::ptrdiff_t i = 0; i < count; ++i) in.push_back(make(i));
  };
  add(kSources, [&](auto) { return normal({kB, kT, kD}, dtype); });
  in.push_back(norms ? normal({kB, kT, kWays, kSources}) : normal({1, kSources}));
  if (!norms) return in;
  add(kSources, [](auto) { return normal({kD}); });
  add(kSources, [&](auto j) { return ops::inverse_rms_reference(in[j], kEps); });
  add(kWays, [](auto) { return normal({kD}); });
  return in;
}

bool compare_sum(const std::string& name, bool norms, at::ScalarType dtype) {
  return compare({name + "/" + name_of(dtype), [=] { return make_inputs(norms, dtype); },
                  [=](const Tensors& in) { return ops::depth_weighted_sum(sum_of(in, norms)); },
                  [=](const Tensors& in) { return ops::depth_weighted_sum_reference(sum_of(in, norms)); }});
}

bool compare_inverse(at::ScalarType dtype) {
  return compare({"inverse_rms/" + name_of(dtype), [=] { return Tensors{normal({kB, kT, kD}, dtype)}; },
                  [](const Tensors& in) { return Tensors{ops::inverse_rms(in[0], kEps)}; },
                  [](const Tensors& in) { return Tensors{ops::inverse_rms_reference(in[0], kEps)}; }});
}

[[maybe_unused]] const bool kAdded = compare_sum("depth_weighted_sum/static", false, at::kFloat) &&
                                     compare_sum("depth_weighted_sum/four_ways_with_norms", true, at::kFloat) &&
                                     compare_sum("depth_weighted_sum/four_ways_with_norms", true, at::kBFloat16) &&
                                     compare_inverse(at::kFloat);

}  // namespace
}  // namespace satformer::microbench
