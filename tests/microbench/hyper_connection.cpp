// hyper_connection_read and hyper_connection_write at sizes of training: [batch, tokens, streams, hidden size], dynamic
// coefficients.
#include "csrc/ops/hyper_connection.h"

#include <fmt/format.h>

#include "csrc/ops/hyper_connection_reference.h"
#include "tests/microbench/comparison.h"

namespace satformer::microbench {
namespace {

ops::HyperConnection parameters_of(const Tensors& in) {
  ops::HyperConnection p;
  p.static_alpha = in[1], p.static_beta = in[2], p.norm_weight = in[3];
  p.dynamic_alpha_proj = in[4], p.dynamic_beta_proj = in[5];
  p.dynamic_alpha_scale = in[6], p.dynamic_beta_scale = in[7];
  return p;
}

bool compare_read(std::int64_t n, std::int64_t d, at::ScalarType dtype) {
  const auto outputs = [](const ops::HyperConnectionRead& read) { return Tensors{read.input, read.mixed, read.beta}; };
  return compare(
      {fmt::format("hyper_connection_read/{}x{}/{}", n, d, name_of(dtype)),
       [=] {
         return Tensors{normal({4, 256, n, d}, dtype), normal({n, n + 1}), normal({n}), normal({d}),
                        normal({d, n + 1}) / 16,       normal({d}) / 16,   normal({1}), normal({1})};
       },
       [=](const Tensors& in) { return outputs(ops::hyper_connection_read(in[0], parameters_of(in))); },
       [=](const Tensors& in) { return outputs(ops::hyper_connection_read_reference(in[0], parameters_of(in))); }});
}

bool compare_write(std::int64_t n, std::int64_t d, at::ScalarType dtype) {
  return compare(
      {fmt::format("hyper_connection_write/{}x{}/{}", n, d, name_of(dtype)),
       [=] { return Tensors{normal({4, 256, n, d}, dtype), normal({4, 256, n}), normal({4, 256, d}, dtype)}; },
       [](const Tensors& in) { return Tensors{ops::hyper_connection_write(in[0], in[1], in[2])}; },
       [](const Tensors& in) { return Tensors{ops::hyper_connection_write_reference(in[0], in[1], in[2])}; }});
}

[[maybe_unused]] const bool kAdded = compare_read(4, 256, at::kFloat) && compare_read(4, 256, at::kBFloat16) &&
                                     compare_write(4, 256, at::kFloat) && compare_write(4, 256, at::kBFloat16);

}  // namespace
}  // namespace satformer::microbench
