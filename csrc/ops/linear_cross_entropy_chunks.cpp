#include "csrc/ops/linear_cross_entropy_chunks.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

// sum of grad_logits^T hidden over the chunks, in the arithmetic dtype.
class WeightGradient {
 public:
  explicit WeightGradient(const at::Tensor& weight)
      : sum_(at::empty(weight.sizes(), weight.options().dtype(accumulate_dtype(weight)))) {}

  void add(const at::Tensor& grad_logits, const at::Tensor& hidden) {
    const at::Tensor transposed = grad_logits.t();
    if (hidden.scalar_type() == sum_.scalar_type()) {
      started_ ? at::addmm_out(sum_, sum_, transposed, hidden) : at::mm_out(sum_, transposed, hidden);
    } else {
      add_low_precision(transposed, hidden);
    }
    started_ = true;
  }

  at::Tensor result(at::ScalarType dtype) {
    if (!started_) sum_.zero_();
    return sum_.to(dtype);
  }

 private:
  // CUDA multiplies bfloat16 into float32; CPU rounds each chunk's product before it is added.
  void add_low_precision(const at::Tensor& transposed, const at::Tensor& hidden) {
    if (hidden.is_cuda() && !started_) {
      at::mm_outf(transposed, hidden, sum_.scalar_type(), sum_);
      return;
    }
    if (!product_.defined()) {
      product_ = at::empty(sum_.sizes(), hidden.is_cuda() ? sum_.options() : hidden.options());
    }
    hidden.is_cuda() ? at::mm_outf(transposed, hidden, sum_.scalar_type(), product_)
                     : at::mm_out(product_, transposed, hidden);
    started_ ? sum_.add_(product_) : sum_.copy_(product_);
  }

  at::Tensor sum_, product_;
  bool started_ = false;
};

}  // namespace

CrossEntropyResults cross_entropy_in_chunks(const CrossEntropyArguments& arguments, int64_t rows_a_chunk,
                                            c10::function_ref<void(const LogitRows&)> kernel) {
  const at::Tensor &hidden = arguments.hidden, &weight = arguments.weight, transposed = weight.t();
  const int64_t N = hidden.size(0), V = weight.size(0);
  const int64_t chunks = std::max<int64_t>(1, (N + rows_a_chunk - 1) / rows_a_chunk);
  const int64_t rows = (N + chunks - 1) / chunks;
  CrossEntropyResults results;
  const at::ScalarType dtype = accumulate_dtype(hidden);
  results.losses = at::empty({N}, hidden.options().dtype(dtype));
  if (arguments.wanted[0]) results.grad_hidden = at::empty(hidden.sizes(), hidden.options());
  std::optional<WeightGradient> weight_gradient;
  if (arguments.wanted[1]) weight_gradient.emplace(weight);
  const at::Tensor targets = arguments.targets.contiguous();
  // Rows start on 16 bytes, whatever V.
  const at::Tensor buffer = at::empty({rows, (V + 7) / 8 * 8}, hidden.options());
  for (int64_t begin = 0; begin < N; begin += rows) {
    const int64_t n = std::min(rows, N - begin);
    const at::Tensor chunk = hidden.narrow(0, begin, n);
    at::Tensor logits = buffer.narrow(0, 0, n).narrow(1, 0, V);
    at::mm_out(logits, chunk, transposed);
    kernel({logits, targets.narrow(0, begin, n), results.losses.narrow(0, begin, n), arguments.ignore_index,
            arguments.scale, arguments.wanted[0] || arguments.wanted[1]});
    if (arguments.wanted[0]) {
      at::Tensor grad_hidden = results.grad_hidden.narrow(0, begin, n);
      at::mm_out(grad_hidden, logits, weight);
    }
    if (weight_gradient) weight_gradient->add(logits, chunk);
  }
  if (weight_gradient) {
    results.grad_weight = weight_gradient->result(arguments.grad_weight_dtype.value_or(weight.scalar_type()));
  }
  return results;
}

}  // namespace satformer::ops
