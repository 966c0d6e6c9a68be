// rms_norm and add_rms_norm at sizes of training: [tokens, hidden size].
#include "csrc/ops/rms_norm.h"

#include <fmt/format.h>

#include "csrc/ops/rms_norm_reference.h"
#include "tests/microbench/comparison.h"

namespace satformer::microbench {
namespace {

constexpr double kEps = 1e-5;

bool compare_norm(std::int64_t tokens, std::int64_t n, at::ScalarType dtype) {
  const std::string sizes = fmt::format("/{}x{}/{}", tokens, n, name_of(dtype));
  compare({"rms_norm" + sizes, [=] { return Tensors{normal({tokens, n}, dtype), normal({n})}; },
           [](const Tensors& in) { return Tensors{std::get<0>(ops::rms_norm(in[0], in[1], kEps))}; },
           [](const Tensors& in) { return Tensors{std::get<0>(ops::rms_norm_reference(in[0], in[1], kEps))}; }});
  const auto pair = [](const auto& result) { return Tensors{std::get<0>(result), std::get<1>(result)}; };
  return compare(
      {"add_rms_norm" + sizes, [=] { return Tensors{normal({tokens, n}), normal({tokens, n}, dtype), normal({n})}; },
       [=](const Tensors& in) { return pair(ops::add_rms_norm(in[0], in[1], in[2], kEps, dtype)); },
       [=](const Tensors& in) { return pair(ops::add_rms_norm_reference(in[0], in[1], in[2], kEps, dtype)); }});
}

[[maybe_unused]] const bool kAdded = compare_norm(1024, 256, at::kFloat) && compare_norm(2048, 768, at::kFloat) &&
                                     compare_norm(2048, 768, at::kBFloat16);

}  // namespace
}  // namespace satformer::microbench
