#include "tests/csrc/gated_value_mix_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include "csrc/ops/gated_value_mix_checks.h"
#include "csrc/ops/gated_value_mix_reference.h"
#include "csrc/ops/tensor_fields.h"

namespace satformer::tests {
namespace {

at::Tensor make_broadcast(Broadcast kind, const MixSizes& s, const at::Generator& generator) {
  switch (kind) {
    case Broadcast::kNone:
      return {};
    case Broadcast::kScalar:
      return at::randn({}, generator);
    case Broadcast::kHeads:
      return at::randn({s.H}, generator);
    case Broadcast::kTokens:
      return at::randn({1, s.T, 1}, generator);
    case Broadcast::kFull:
      return at::randn({s.B, s.T, s.H}, generator);
  }
  return {};
}

}  // namespace

const std::array<ops::Gate, 6> kAllGates{ops::Gate::kRelu,           ops::Gate::kSigmoid, ops::Gate::kSoftmax,
                                         ops::Gate::kSoftmaxSigmoid, ops::Gate::kTanh,    ops::Gate::kIdentity};

const std::array<std::pair<at::ScalarType, at::ScalarType>, 7> kDtypes{{{at::kFloat, at::kFloat},
                                                                        {at::kBFloat16, at::kBFloat16},
                                                                        {at::kBFloat16, at::kFloat},
                                                                        {at::kHalf, at::kHalf},
                                                                        {at::kHalf, at::kFloat},
                                                                        {at::kDouble, at::kDouble},
                                                                        {at::kDouble, at::kFloat}}};

std::string MixCase::text() const {
  return fmt::format("[{}, {}, {}, {}] {} logits {} gate {} layout {} scale {} shift {} ({})", sizes.B, sizes.T,
                     sizes.H, sizes.hd, c10::toString(dtype), c10::toString(logits_dtype), ops::gate_name(gate),
                     static_cast<int>(layout), static_cast<int>(scale), static_cast<int>(shift),
                     c10::toString(intervention_dtype));
}

MixInputs make_inputs(const MixCase& c, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto [B, T, H, hd] = c.sizes;
  const auto values = [&](const std::vector<std::int64_t>& shape) { return at::randn(shape, generator).to(c.dtype); };
  MixInputs in;
  switch (c.layout) {
    case Layout::kPackedSlice: {
      const at::Tensor packed = values({B, T, 3 * H * hd});
      in.v = packed.slice(2, 2 * H * hd).view({B, T, H, hd});
      in.first_values = packed.slice(2, H * hd, 2 * H * hd).view({B, T, H, hd});
      break;
    }
    case Layout::kHeadsFirst:
      in.v = values({B, H, T, hd}).transpose(1, 2);
      in.first_values = values({B, H, T, hd}).transpose(1, 2);
      break;
    case Layout::kExpandedFirst:
      in.v = values({B, T, H, hd});
      in.first_values = values({1, 1, H, hd}).expand({B, T, H, hd});
      break;
    default:
      in.v = values({B, T, H, hd});
      in.first_values = values({B, T, H, hd});
  }
  in.logits = c.layout == Layout::kStridedLogits
                  ? at::randn({B, T, 2 * H}, generator).to(c.logits_dtype).slice(2, 0, 2 * H, 2)
                  : at::randn({B, T, H}, generator).to(c.logits_dtype);
  if (c.scale != Broadcast::kNone) in.scale = make_broadcast(c.scale, c.sizes, generator).to(c.intervention_dtype);
  if (c.shift != Broadcast::kNone) in.shift = make_broadcast(c.shift, c.sizes, generator).to(c.intervention_dtype);
  in.grad = values({B, T, H, hd});
  return in;
}

MixInputs to_double(const MixInputs& in) {
  MixInputs out = ops::map_tensors(in, [](const at::Tensor& x) { return x.to(at::kDouble); });
  out.grad = in.grad.to(at::kDouble);
  return out;
}

at::Tensor mix_magnitude(const MixInputs& in, ops::Gate gate) {
  at::Tensor alpha = ops::apply_gate(in.logits, gate).abs();
  if (in.scale) alpha = in.scale->abs() * alpha;
  if (in.shift) alpha = alpha + in.shift->abs();
  return in.v.abs() + alpha.unsqueeze(-1) * in.first_values.abs();
}

std::vector<at::Tensor> gradient_magnitudes(const MixInputs& in, ops::Gate gate) {
  const at::Tensor alpha = ops::apply_gate(in.logits, gate).abs();
  at::Tensor mixed = in.scale ? in.scale->abs() * alpha : alpha;
  if (in.shift) mixed = mixed + in.shift->abs();
  const at::Tensor dot = (in.grad * in.first_values).abs().sum(-1);
  at::Tensor to_logits = in.scale ? in.scale->abs() * dot : dot;
  if ((gate == ops::Gate::kSoftmax || gate == ops::Gate::kSoftmaxSigmoid) && dot.numel() > 0) {
    const at::Tensor largest = std::get<0>(to_logits.max(-1, /*keepdim=*/true));
    to_logits = (1 + ops::apply_gate(in.logits, ops::Gate::kSoftmax)) * (to_logits + largest);
  }
  std::vector<at::Tensor> list{in.grad.abs(), mixed.unsqueeze(-1) * in.grad.abs(), to_logits};
  if (in.scale) list.push_back(ops::sum_terms(alpha * dot, in.scale));
  if (in.shift) list.push_back(ops::sum_terms(dot, in.shift));
  return list;
}

}  // namespace satformer::tests
