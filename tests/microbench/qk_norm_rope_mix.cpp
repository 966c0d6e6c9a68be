// qk_norm_rope_mix at sizes of training: batch, tokens, heads, KV heads, head dimension; the three value mixes. q, k, v
// and logits are slices of one projection.
#include "csrc/ops/qk_norm_rope_mix.h"

#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>
#include <fmt/format.h>

#include "csrc/ops/qk_norm_rope_mix_reference.h"
#include "tests/microbench/comparison.h"

namespace satformer::microbench {
namespace {

struct Sizes {
  std::int64_t B, T, H, H_kv, hd;
};

enum class Mix { kNone, kSelective, kStatic };

// in: the projection, the norms' weights, what the mix takes, cos and sin.
ops::MixInputs inputs_of(const Tensors& in, const Sizes& s, Mix mix) {
  const auto heads = [&](std::int64_t begin, std::int64_t count) {
    return in[0].slice(-1, begin, begin + count * s.hd).unflatten(-1, {count, s.hd});
  };
  const std::int64_t end_of_q = s.H * s.hd, rows = s.H_kv * s.hd;
  ops::MixInputs out{heads(0, s.H), heads(end_of_q, s.H_kv), heads(end_of_q + rows, s.H_kv), in.end()[-2],
                     in.end()[-1]};
  out.q_weight = in[1], out.k_weight = in[2];
  out.copy_values = true;
  if (mix != Mix::kNone) out.first_values = in[3];
  if (mix == Mix::kSelective) out.logits = in[0].slice(-1, end_of_q + 2 * rows);
  if (mix == Mix::kStatic) out.lambda1 = in[4], out.lambda2 = in[5];
  return out;
}

Tensors make_inputs(const Sizes& s, Mix mix, at::ScalarType dtype) {
  Tensors in{normal({s.B, s.T, (s.H + 2 * s.H_kv) * s.hd + s.H_kv}, dtype), normal({s.hd}), normal({s.hd})};
  if (mix != Mix::kNone) in.push_back(normal({s.B, s.T, s.H_kv, s.hd}, dtype));
  if (mix == Mix::kStatic) in.insert(in.end(), {normal({}), normal({})});
  const at::Tensor angles = normal({s.T, 1, s.hd / 2});
  in.insert(in.end(), {angles.cos(), angles.sin()});
  return in;
}

bool compare_inputs(const char* name, const Sizes& s, Mix mix, at::ScalarType dtype) {
  const auto outputs = [](const ops::MixOutputs& x) { return Tensors{x.q, x.k, x.v}; };
  return compare({fmt::format("qk_norm_rope_mix/{}/{}", name, name_of(dtype)),
                  [=] { return make_inputs(s, mix, dtype); },
                  [=](const Tensors& in) { return outputs(ops::qk_norm_rope_mix(inputs_of(in, s, mix))); },
                  [=](const Tensors& in) { return outputs(ops::qk_norm_rope_mix_reference(inputs_of(in, s, mix))); },
                  /*constants=*/2});
}

constexpr Sizes kSizes{4, 256, 4, 4, 64};

[[maybe_unused]] const bool kAdded = compare_inputs("none", kSizes, Mix::kNone, at::kFloat) &&
                                     compare_inputs("selective", kSizes, Mix::kSelective, at::kFloat) &&
                                     compare_inputs("static", kSizes, Mix::kStatic, at::kFloat) &&
                                     compare_inputs("selective", kSizes, Mix::kSelective, at::kBFloat16);

}  // namespace
}  // namespace satformer::microbench
