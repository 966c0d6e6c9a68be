// swiglu at sizes of training: [tokens, 2 f].
#include "csrc/ops/swiglu.h"

#include <fmt/format.h>

#include "csrc/ops/swiglu_reference.h"
#include "tests/microbench/comparison.h"

namespace satformer::microbench {
namespace {

bool compare_swiglu(std::int64_t tokens, std::int64_t f, at::ScalarType dtype) {
  return compare({fmt::format("swiglu/{}x{}/{}", tokens, f, name_of(dtype)),
                  [=] { return Tensors{normal({tokens, 2 * f}, dtype)}; },
                  [](const Tensors& in) { return Tensors{ops::swiglu(in[0])}; },
                  [](const Tensors& in) { return Tensors{ops::swiglu_reference(in[0])}; }});
}

[[maybe_unused]] const bool kAdded = compare_swiglu(1024, 768, at::kFloat) && compare_swiglu(2048, 2048, at::kFloat) &&
                                     compare_swiglu(2048, 2048, at::kBFloat16);

}  // namespace
}  // namespace satformer::microbench
