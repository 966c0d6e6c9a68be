#pragma once
// How the other architectures reach early representations, in numbers that can be set beside the gates'.
//   ResFormer           lambda1, lambda2 of each layer; the contribution |lambda1 v1| / |lambda2 v| of each head
//   DenseFormer         weights of each average over the embedding (source 0) and the blocks' outputs
//   MUDDFormer          the same for each way (q, k, v, r), per token
//   HyperConnections    the matrices A and beta, and what they amount to: the weight with which a module's input
//                       reads the embedding and each earlier module's output. Hs is linear in these, so the weights
//                       follow per token: with c_j [n] how much of source j each stream holds,
//                         weight_j = sum over i of A_i0 c_ji;  c_j <- A_1..n^T c_j;  c_new = beta
#include <cstdint>
#include <string>
#include <vector>

#include "satformer/analysis/statistics/moments.h"
#include "satformer/analysis/tokens/stream.h"

namespace satformer::analysis {

// What reads the depth: a block's way, a module's input, or the final norm.
struct DepthReader {
  std::string name;                   // "block 4 v": what block 4's values read; "block 2 mlp"; "output"
  std::int64_t layer = 0;             // the block, 0-based; their number for "output"
  std::vector<std::int64_t> sources;  // 0: embedding; j: output of block j - 1, or of module j - 1
  std::vector<Moments> weights;       // of each source, over tokens
  Moments early_share;                // |weight| of all sources but the newest, as a share of all |weight|
  Moments lookback;                   // mean distance from the newest source, in sources, weighted by |weight|
};

struct StaticAccess {
  std::int64_t layer = 0;
  double lambda1 = 0.0, lambda2 = 0.0;
  std::vector<Moments> contribution, first_share;  // of each KV head; as in GateSeries
};

// A module's matrices over tokens and streams.
struct ConnectionMatrices {
  std::string name;            // "block 2 mlp"
  std::vector<Moments> alpha;  // [n, n + 1]
  std::vector<Moments> beta;   // [n]
};

struct DepthAccess {
  std::vector<StaticAccess> layers;
  std::vector<DepthReader> readers;
  std::vector<ConnectionMatrices> matrices;

  bool empty() const { return layers.empty() && readers.empty(); }
};

// Empty for the plain Transformer, and where the access is gates (gates/collect.h).
DepthAccess collect_depth_access(models::LanguageModel& model, const TokenStream& stream);

}  // namespace satformer::analysis
