#include "satformer/nn/attention_context.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "satformer/nn/rotary.h"
#include "satformer/runtime/compute_dtype.h"
#include "satformer/runtime/device.h"

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
    const at::Tensor ids = document_ids.to(hidden.device());
    const at::Tensor same_document = ids.unsqueeze(2).eq(ids.unsqueeze(1));
    visible = visible.logical_and(same_document).unsqueeze(1);
  }
  // In the attention's own dtype, or every layer would convert it again.
  return at::zeros(visible.sizes(), hidden.options().dtype(compute_dtype(hidden)))
      .masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
}

// What flash attention takes.
bool takes_documents(const at::Tensor& hidden, std::int64_t head_dim) {
  const at::ScalarType dtype = compute_dtype(hidden);
  return hidden.is_cuda() && (dtype == at::kBFloat16 || dtype == at::kHalf) && head_dim % 8 == 0 && head_dim <= 256;
}

}  // namespace

std::optional<Documents> find_documents(const at::Tensor& document_ids) {
  const at::Tensor ids = document_ids.cpu().contiguous();
  const std::int64_t rows = ids.size(0), length = ids.size(1);
  const std::int64_t* id = ids.const_data_ptr<std::int64_t>();
  std::vector<std::int32_t> offsets;
  std::int64_t longest = 0, begin = 0;
  const auto end_document = [&](std::int64_t end) {
    if (end > begin) offsets.push_back(static_cast<std::int32_t>(begin));
    longest = std::max(longest, end - begin);
    begin = end;
  };
  for (std::int64_t i = 0; i < rows * length; ++i) {
    if (i % length == 0) {
      end_document(i);
    } else if (id[i] != id[i - 1]) {
      if (id[i] < id[i - 1]) return std::nullopt;  // may have been there before
      end_document(i);
    }
  }
  end_document(rows * length);
  offsets.push_back(static_cast<std::int32_t>(rows * length));
  return Documents{at::tensor(offsets, at::kInt), longest};
}

AttentionContext make_attention_context(const at::Tensor& hidden, const at::Tensor& positions,
                                        const at::Tensor& document_ids, const AttentionContextOptions& options) {
  const at::Tensor all_positions =
      positions.defined() ? positions : at::arange(hidden.size(1), hidden.options().dtype(at::kLong));
  AttentionContext context{
      .rotary = make_rotary_tables(all_positions, options.head_dim, options.rope_theta, accumulate_dtype(hidden))};
  if (options.fused && document_ids.defined() && takes_documents(hidden, options.head_dim)) {
    context.documents = find_documents(document_ids);
  }
  if (context.documents) {
    context.documents->offsets = to_device(context.documents->offsets, hidden.device());
    context.window_size = options.window_size;
  } else {
    context.mask = make_mask(hidden, document_ids, options.window_size);
  }
  return context;
}

}  // namespace satformer::nn
