// hyper_connection_read and hyper_connection_write on a GPU: what the CPU's kernels are held to.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include "csrc/ops/hyper_connection.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/hyper_connection_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {

TEST_CASE("hyper_connection_read_CUDA: values and gradients for every form, dtype and number of streams",
          "[ops][cuda]") {
  if (!has_cuda()) return;
  std::uint64_t seed = 300;
  for (const at::ScalarType dtype : kCudaDtypes) {
    for (std::int64_t n = 1; n <= ops::kMaxStreams; ++n) {
      for (int form = 0; form < 8; ++form) {
        HyperCase c;
        c.n = n, c.d = seed % 2 == 0 ? 21 : 64, c.dtype = dtype;
        c.dynamic = form < 6, c.layer_norm = form & 1, c.use_tanh = !(form & 2), c.expanded = seed % 3 == 0;
        c.parameters_dtype = seed % 5 < 2 ? dtype : at::kFloat;
        check_hyper_read(c, seed++, at::kCUDA);
      }
    }
  }
}

TEST_CASE("hyper_connection_read_CUDA: values and gradients for every size", "[ops][cuda]") {
  if (!has_cuda()) return;
  constexpr std::array<std::array<std::int64_t, 4>, 10> kSizes{{{1, 1, 1, 1},
                                                                {1, 2, 2, 37},
                                                                {0, 3, 4, 8},
                                                                {2, 0, 4, 8},
                                                                {1, 70, 4, 64},
                                                                {3, 43, 2, 8},
                                                                {1, 3, 4, 257},
                                                                {1, 2, 3, 1000},
                                                                {2, 1100, 4, 24},
                                                                {2, 3, 4, 1536}}};
  std::uint64_t seed = 600;
  for (const at::ScalarType dtype : kCudaDtypes) {
    for (const auto& [B, T, n, d] : kSizes) {
      for (const bool layer_norm : {false, true}) {
        HyperCase c;
        c.B = B, c.T = T, c.n = n, c.d = d, c.layer_norm = layer_norm, c.dtype = dtype;
        check_hyper_read(c, seed++, at::kCUDA);
      }
    }
  }
}

TEST_CASE("hyper_connection_write_CUDA: values and gradients for every dtype and size", "[ops][cuda]") {
  if (!has_cuda()) return;
  constexpr std::array<std::array<std::int64_t, 4>, 8> kSizes{{{1, 1, 1, 1},
                                                               {2, 3, 4, 21},
                                                               {0, 3, 4, 8},
                                                               {2, 0, 4, 8},
                                                               {1, 70, 4, 64},
                                                               {1, 3, 8, 257},
                                                               {1, 2, 2, 16},
                                                               {2, 300, 3, 1536}}};
  for (const at::ScalarType dtype : kCudaDtypes) {
    for (const auto& [B, T, n, d] : kSizes) {
      HyperCase c;
      c.B = B, c.T = T, c.n = n, c.d = d, c.dtype = dtype;
      check_hyper_write(c, dtype, at::kCUDA);
      check_hyper_write(c, at::kBFloat16, at::kCUDA);
      c.parameters_dtype = dtype;
      check_hyper_write(c, dtype, at::kCUDA);
    }
  }
}

TEST_CASE("hyper_connection_CUDA: repeated runs give the same bits", "[ops][cuda]") {
  if (!has_cuda()) return;
  HyperCase c;
  c.B = 3, c.T = 1500, c.d = 40, c.layer_norm = true, c.dtype = at::kBFloat16;
  const HyperInputs in = on(at::kCUDA, make_hyper(c, 3));
  const auto run = [&] {
    const auto read = ops::hyper_connection_read(in.streams, in.parameters);
    const auto gradients = ops::hyper_connection_read_backward({in.grad_input, in.grad_mixed, in.grad_beta, {}},
                                                               in.streams, in.parameters, read.kept);
    return std::vector<at::Tensor>{read.input,
                                   read.mixed,
                                   read.beta,
                                   gradients.streams,
                                   gradients.static_alpha,
                                   gradients.norm_weight,
                                   gradients.dynamic_alpha_proj,
                                   gradients.dynamic_alpha_scale};
  };
  const auto first = run(), second = run();
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i], second[i]));
}

TEST_CASE("hyper_connection_CUDA: devices and sizes that it refuses", "[ops][cuda]") {
  if (!has_cuda()) return;
  const HyperInputs cpu = make_hyper(HyperCase{}, 1), cuda = on(at::kCUDA, cpu);
  CHECK(message_of([&] { ops::hyper_connection_read(cuda.streams, cpu.parameters); }) ==
        "hyper_connection_read: static_alpha must be on cuda:0 like streams, got cpu");
  HyperCase long_rows;
  long_rows.B = long_rows.T = 1, long_rows.n = 8, long_rows.d = 5121;
  const HyperInputs in = on(at::kCUDA, make_hyper(long_rows, 1));
  const auto read = ops::hyper_connection_read(in.streams, in.parameters);
  CHECK(message_of([&] {
          ops::hyper_connection_read_backward({in.grad_input, in.grad_mixed, in.grad_beta, {}}, in.streams,
                                              in.parameters, read.kept);
        }) == "hyper_connection_read_backward: (n + 2) * d must be at most 51200 on CUDA, got n 8 and d 5121");
}

}  // namespace satformer::tests
