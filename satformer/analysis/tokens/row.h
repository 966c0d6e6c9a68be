#pragma once
// What an analysis wants to know of a token.
#include <bit>
#include <cstdint>

namespace satformer::analysis {

// Positions 0, 1, 2-3, 4-7, 8-15, ...: bucket b > 0 holds 2^(b-1) .. 2^b - 1.
inline std::int64_t position_bucket(std::int64_t position) {
  return std::bit_width(static_cast<std::uint64_t>(position));
}
inline std::int64_t bucket_begin(std::int64_t bucket) { return bucket == 0 ? 0 : std::int64_t{1} << (bucket - 1); }

// A token that counts.
struct TokenRow {
  std::int64_t row = 0;    // in the batch's [B * T]
  std::int64_t index = 0;  // in the split
  std::int64_t id = 0;
  std::int64_t bucket = 0;       // of its position
  std::int64_t token_class = 0;  // 0 without classes
  std::int64_t block = 0;
};

}  // namespace satformer::analysis
