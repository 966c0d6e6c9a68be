#include "satformer/nn/embedding.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>

namespace satformer::nn {

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& options, const at::TensorOptions& tensors)
    : padding_index_(options.pad_token_id.value_or(-1)) {
  weight = register_parameter("weight", at::empty({options.vocab_size, options.hidden_size}, tensors));
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) { return at::embedding(weight, ids, padding_index_); }

}  // namespace satformer::nn
