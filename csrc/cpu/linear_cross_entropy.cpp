// CPU: checks, the size of a chunk, the sum of the losses; the kernel for a chunk's logits is of this machine's
// capability.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "csrc/cpu/linear_cross_entropy_kernel.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/linear_cross_entropy_chunks.h"

namespace at::native {
DEFINE_DISPATCH(satformer_logit_rows_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

// Few enough rows that their logits stay in the last-level cache between the products and the kernel, enough of them
// that the products run at full speed and the gradient of weight is not read and written too often.
int64_t rows_a_chunk(const at::Tensor& hidden, const at::Tensor& weight) {
  constexpr int64_t kBytes = 4 << 20, kLeastRows = 128, kMostRows = 1024;
  const int64_t bytes_a_row = std::max<int64_t>(1, weight.size(0) * static_cast<int64_t>(hidden.element_size()));
  return std::clamp(kBytes / bytes_a_row, kLeastRows, kMostRows);
}

void check_targets(const char* op, const CrossEntropyArguments& arguments) {
  const at::Tensor targets = arguments.targets.contiguous();
  const int64_t V = arguments.weight.size(0);
  const int64_t* values = targets.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < targets.numel(); ++i) {
    TORCH_CHECK_INDEX((values[i] >= 0 && values[i] < V) || values[i] == arguments.ignore_index, op,
                      ": targets must be 0 .. ", V - 1, " or the ignore_index ", arguments.ignore_index, ", got ",
                      values[i], " at index ", i);
  }
}

// In order and in float64, so that the number of threads does not matter.
at::Tensor sum_of(const at::Tensor& losses) {
  at::Tensor total = at::empty({}, losses.options());
  double sum = 0;
  const auto add_up = [&](const auto* values) {
    for (int64_t i = 0; i < losses.numel(); ++i) sum += values[i];
  };
  losses.scalar_type() == at::kDouble ? add_up(losses.const_data_ptr<double>())
                                      : add_up(losses.const_data_ptr<float>());
  return total.fill_(sum);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> run(const char* op, const CrossEntropyArguments& arguments) {
  check_linear_cross_entropy(op, arguments);
  check_targets(op, arguments);
  const CrossEntropyResults results =
      cross_entropy_in_chunks(arguments, rows_a_chunk(arguments.hidden, arguments.weight),
                              [](const LogitRows& rows) { at::native::satformer_logit_rows_stub(at::kCPU, rows); });
  return {sum_of(results.losses), results.grad_hidden, results.grad_weight};
}

at::Tensor linear_cross_entropy_cpu(const CrossEntropyInputs& in) {
  return std::get<0>(run("linear_cross_entropy", {in}));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy_with_gradients_cpu(
    const CrossEntropyArguments& in) {
  return run("linear_cross_entropy_with_gradients", in);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"linear_cross_entropy", &linear_cross_entropy_cpu>(library);
  implement<"linear_cross_entropy_with_gradients", &linear_cross_entropy_with_gradients_cpu>(library);
}
