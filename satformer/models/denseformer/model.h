#pragma once
// DenseFormer.
#include "satformer/models/decoder.h"

namespace satformer::models {

// Depth-weighted averages (Pagliardini et al., arXiv 2402.02622). With X_0 the embedding and X_i the output of block i
// (1-based), after every dwa_period-th block:
//   Y_i = sum over j = i, i - dwa_dilation, i - 2 dwa_dilation, ... >= 0 of a_ij X_j
// Y_i feeds block i + 1, the last Y the final norm. After the other blocks Y_i = X_i, and that X_i still joins later
// averages. At the start a_ii = 1 and the rest is 0: the plain Transformer.
class DenseFormer : public BlockDecoder {
 public:
  DenseFormer(const ModelConfig& config, const c10::TensorOptions& tensors);
  at::Tensor hidden_states(const ModelInput& input, nn::Observer* observer = nullptr) override;

 private:
  // Y after block `layer` (0-based) from X_0 .. X_{layer + 1}.
  at::Tensor average(std::int64_t layer, const std::vector<at::Tensor>& outputs);

  std::vector<at::Tensor> alphas_;  // [1, sources] for each block; undefined where Y = X
};

}  // namespace satformer::models
