#include "satformer/nn/sequence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "satformer/nn/compute_dtype.h"

namespace satformer::nn {
namespace {

// bool [T, T]: which key (column) each query (row) may see.
at::Tensor causal_window(std::int64_t length, const std::optional<std::int64_t>& window_size,
                         const at::TensorOptions& integers) {
  const at::Tensor index = at::arange(length, integers);
  const at::Tensor distance = index.unsqueeze(1) - index.unsqueeze(0);
  const at::Tensor causal = distance.ge(0);
  return window_size ? causal.logical_and(distance.lt(*window_size)) : causal;
}

at::Tensor make_mask(const at::Tensor& hidden, const at::Tensor& document_ids,
                     const std::optional<std::int64_t>& window_size) {
  const std::int64_t length = hidden.size(1);
  const bool windowed = window_size && *window_size < length;
  if (!windowed && !document_ids.defined()) return {};
  at::Tensor visible = causal_window(length, window_size, hidden.options().dtype(at::kLong));
  if (document_ids.defined()) {
    const at::Tensor same_document = document_ids.unsqueeze(2).eq(document_ids.unsqueeze(1));
    visible = visible.logical_and(same_document).unsqueeze(1);
  }
  // In the attention's own dtype, or every layer would convert it again.
  return at::zeros(visible.sizes(), hidden.options().dtype(compute_dtype(hidden)))
      .masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

Sequence make_sequence(const at::Tensor& hidden, const at::Tensor& positions, const at::Tensor& document_ids,
                       const SequenceOptions& options) {
  const at::Tensor places =
      positions.defined() ? positions : at::arange(hidden.size(1), hidden.options().dtype(at::kLong));
  return {make_rotary_tables(places, options.head_dim, options.rope_theta, accumulate_dtype(hidden)),
          make_mask(hidden, document_ids, options.window_size)};
}

}  // namespace satformer::nn
