#pragma once
// A list of dense tensors as one flat range, cut into blocks: kFlatBlock numbers of one tensor, fewer at its end. The
// cut depends on the sizes alone, so that what is computed block by block does not depend on the number of threads.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace satformer::ops {

inline constexpr std::int64_t kFlatBlock = 8192;

// As kernels take it.
struct FlatBlocks {
  const std::int64_t* numel;  // [tensors]
  const std::int64_t* first;  // [tensors + 1]: the number of each tensor's first block
  std::int64_t tensors;
  std::int64_t count;    // of blocks
  std::int64_t numbers;  // of all tensors
};

class FlatBlockTable {
 public:
  explicit FlatBlockTable(at::TensorList tensors) : first_{0} {
    for (const at::Tensor& x : tensors) {
      const std::int64_t n = x.numel();
      numel_.push_back(n);
      first_.push_back(first_.back() + (n + kFlatBlock - 1) / kFlatBlock);
      numbers_ += n;
    }
  }

  // Valid while the table lives.
  FlatBlocks blocks() const {
    return {numel_.data(), first_.data(), static_cast<std::int64_t>(numel_.size()), first_.back(), numbers_};
  }

 private:
  std::vector<std::int64_t> numel_, first_;
  std::int64_t numbers_ = 0;
};

}  // namespace satformer::ops
