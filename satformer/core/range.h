#pragma once
// How what there is is divided over ranks: in order, without gaps, as evenly as whole numbers allow.
#include <cstdint>

namespace satformer {

struct Range {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// The part of [0, count) that `rank` of `size` has: floor(count rank / size) up to floor(count (rank + 1) / size).
// Parts differ by one at most; some are empty where count < size. Splits the product so that it cannot overflow.
inline Range partition(std::int64_t count, int rank, int size) {
  const std::int64_t whole = count / size, rest = count % size;
  const auto bound = [&](std::int64_t r) { return whole * r + rest * r / size; };
  return {bound(rank), bound(rank + 1)};
}

}  // namespace satformer
