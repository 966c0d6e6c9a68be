// CPU kernel of sum_of_squares, compiled once for each CPU capability.
#include "csrc/cpu/sum_of_squares_kernel.h"

#include "csrc/cpu/each_block.h"
#include "csrc/cpu/row.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT(google-build-using-namespace): the kernels' own names

constexpr int64_t kPiece = 512;  // numbers that are converted at a time
constexpr int kSums = 16;        // that do not wait for one another, the same for every width of vectors

// Adds the square of x[j] to sums[j % kSums]; the compiler makes vectors of the inner loop.
template <typename number_t>
void add_squares(double (&sums)[kSums], const number_t* x, int64_t n) {
  int64_t j = 0;
  for (; j + kSums <= n; j += kSums) {
    for (int k = 0; k < kSums; ++k) {
      const auto value = static_cast<double>(x[j + k]);
      sums[k] += value * value;
    }
  }
  for (int k = 0; j + k < n; ++k) {
    const auto value = static_cast<double>(x[j + k]);
    sums[k] += value * value;
  }
}

// acc_t: what the numbers are read as, float unless they are float64.
template <typename acc_t>
double sum_of_block(const FlatNumbers& tensor, int64_t begin, int64_t n) {
  const ReadRows<acc_t> numbers(tensor.data, tensor.dtype, /*stride=*/0);
  acc_t buffer[kPiece];
  double sums[kSums] = {};
  for (int64_t j = 0; j < n; j += kPiece) {
    const int64_t count = std::min(kPiece, n - j);
    add_squares(sums, numbers.read(0, buffer, count, begin + j), count);
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

void sum_of_squares_kernel(const FlatNumbers* tensors, const FlatBlocks& blocks, double* block_sums) {
  for_each_block(blocks, [&](const FlatBlock& block) {
    const FlatNumbers& tensor = tensors[block.tensor];
    block_sums[block.index] = tensor.dtype == kDouble ? sum_of_block<double>(tensor, block.begin, block.size)
                                                      : sum_of_block<float>(tensor, block.begin, block.size);
  });
}

}  // namespace

SATFORMER_REGISTER_DISPATCH(satformer_sum_of_squares_stub, &sum_of_squares_kernel)
}  // namespace at::native
