#include "satformer/data/sampler.h"

#include "satformer/core/error.h"
#include "satformer/data/mixing.h"
#include "satformer/data/window.h"

namespace satformer::data {
namespace {

// Half the bits of the smallest even number of bits that holds `size` values.
int half_bits_for(std::uint64_t size) {
  int half_bits = 1;
  while (half_bits < 32 && (std::uint64_t{1} << (2 * half_bits)) < size) ++half_bits;
  return half_bits;
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size), half_bits_(half_bits_for(size)) {
  require(size >= 1, "permutation: size must be at least 1");
  for (std::uint64_t& round_key : round_keys_) {
    key = mix_bits(key);
    round_key = key;
  }
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  require(index < size_, "permutation: index {} is outside [0, {})", index, size_);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  // The network permutes a power of four that may exceed size: walk its cycle until it is back inside. The walk ends,
  // because `index` itself lies on the cycle, and distinct starts end at distinct places.
  do {
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & mask;
    for (const std::uint64_t round_key : round_keys_) {
      const std::uint64_t next = left ^ (mix_bits(right + round_key) & mask);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

WindowSampler::WindowSampler(std::int64_t num_tokens, std::int64_t seq_length, std::uint64_t seed)
    : seq_length_(seq_length), seed_(seed) {
  require(seq_length >= 1, "seq_length must be at least 1, got {}", seq_length);
  require_window("the training split", num_tokens, seq_length);
  windows_ = (num_tokens - 1) / seq_length;
}

std::int64_t WindowSampler::window_start(std::int64_t index) const {
  require(index >= 0, "sample index must not be negative, got {}", index);
  const auto epoch = static_cast<std::uint64_t>(index / windows_);
  const Permutation order(static_cast<std::uint64_t>(windows_), mix_bits(mix_bits(seed_) + epoch));
  return static_cast<std::int64_t>(order(static_cast<std::uint64_t>(index % windows_))) * seq_length_;
}

}  // namespace satformer::data
