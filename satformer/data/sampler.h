#pragma once
// Which window of the training split a global sample index stands for. Nothing is stored: the order is a keyed
// permutation (a Feistel network over the index bits with cycle walking), a new one for each epoch.
#include <cstdint>

namespace satformer::data {

// A bijection of [0, size) that depends on the key; size >= 1.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t key);
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t size_;
  std::uint64_t round_keys_[8] = {};  // with four, small sizes show a preference for some orders
  int half_bits_;
};

class WindowSampler {
 public:
  // Windows of seq_length inputs and as many targets, one token on: (num_tokens - 1) / seq_length of them.
  // Error when there is not a single one.
  WindowSampler(std::int64_t num_tokens, std::int64_t seq_length, std::uint64_t seed);

  std::int64_t windows_per_epoch() const { return windows_; }
  // First token of the window that global sample `index` (0, 1, 2, ...) reads. Every window once an epoch.
  std::int64_t window_start(std::int64_t index) const;

 private:
  std::int64_t windows_ = 0, seq_length_;
  std::uint64_t seed_;
};

}  // namespace satformer::data
