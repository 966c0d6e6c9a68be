#pragma once
// The token embedding.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

namespace satformer::nn {

struct EmbeddingOptions {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::optional<std::int64_t> pad_token_id;  // the lookup gives this row no gradient
};

// x = E[ids]. Leaves E uninitialised, as Linear does.
class EmbeddingImpl : public torch::nn::Module {
 public:
  EmbeddingImpl(const EmbeddingOptions& options, const at::TensorOptions& tensors);
  // ids: int64 [B, T] -> [B, T, hidden_size]
  at::Tensor forward(const at::Tensor& ids);

  at::Tensor weight;  // E [vocab_size, hidden_size]

 private:
  std::int64_t padding_index_;
};
TORCH_MODULE(Embedding);

}  // namespace satformer::nn
