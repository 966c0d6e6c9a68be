#pragma once
// Which documents are validation.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "satformer/data/mixing.h"
#include "satformer/data/sampler.h"

namespace satformer::data {

// Exactly max(1, round(fraction * documents)) of the documents, chosen by a seeded permutation: document i is
// validation when its place in the permutation is below that number. Needs documents >= 2; leaves at least one for
// training.
class DocumentSplit {
 public:
  DocumentSplit(std::int64_t documents, double fraction, std::uint64_t seed)
      : order_(static_cast<std::uint64_t>(documents), mix_bits(seed ^ kPurpose)),
        num_val_(static_cast<std::uint64_t>(
            std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(documents)), 1, documents - 1))) {}

  bool is_val(std::uint64_t document) const { return order_(document) < num_val_; }
  std::int64_t num_val() const { return static_cast<std::int64_t>(num_val_); }

 private:
  static constexpr std::uint64_t kPurpose = 0x76616c69;  // keeps this order apart from the sampler's
  Permutation order_;
  std::uint64_t num_val_;
};

}  // namespace satformer::data
