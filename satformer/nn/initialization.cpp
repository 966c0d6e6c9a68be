#include "satformer/nn/initialization.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <numbers>

namespace satformer::nn {
namespace {

// FNV-1a over the name, then the finaliser of MurmurHash3: neighbouring seeds give unrelated streams.
std::uint64_t stream_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u ^ seed;
  for (const char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3u;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

}  // namespace

void initialize_normal(at::Tensor& parameter, double std, std::uint64_t seed, std::string_view name) {
  if (parameter.is_meta()) return;
  constexpr std::int64_t kPairs = 1 << 18;  // bounds the float64 scratch memory to 8 MiB
  const at::NoGradGuard no_grad;
  // ATen's own normal_ has a different formula for each vector width, uniform_ in float64 has one.
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(stream_of(seed, name));
  at::Tensor flat = parameter.view(-1);
  for (std::int64_t start = 0; start < flat.numel(); start += 2 * kPairs) {
    const std::int64_t count = std::min(2 * kPairs, flat.numel() - start);
    const std::int64_t pairs = (count + 1) / 2;
    const at::Tensor uniform = at::empty({2, pairs}, at::kDouble).uniform_(0, 1, generator);
    const at::Tensor radius = at::log1p(-uniform[0]).mul_(-2).sqrt_().mul_(std);
    const at::Tensor angle = uniform[1].mul(2 * std::numbers::pi);
    flat.slice(0, start, start + pairs).copy_(at::cos(angle).mul_(radius));
    flat.slice(0, start + pairs, start + count).copy_(at::sin(angle).mul_(radius).slice(0, 0, count - pairs));
  }
}

}  // namespace satformer::nn
