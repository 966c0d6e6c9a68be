// sum_of_squares' CUDA kernels and launcher against exact sums.
#include "tests/cuda_host/testing.h"

#include <memory>

#include "csrc/cuda/sum_of_squares.cu"
#include "tests/cuda_host/flat_buffers.h"

namespace satformer::ops::cuda {
namespace {

// A list of tensors of any types.
class Tensors {
 public:
  template <typename T>
  void add(const std::vector<T>& numbers, size_t shift = 0) {
    auto holder = std::make_unique<Holder<T>>("tensor", numbers, shift);
    list_.push_back({holder->buffer.input(), static_cast<int64_t>(numbers.size())});
    blocks_ += flat_blocks(list_.back().n, kSumOfSquaresBlock);
    buffers_.push_back(std::move(holder));
  }

  double sum(const std::string& where) const {
    cuda_host::Buffer<double> partial_sums(static_cast<size_t>(blocks_), "partial_sums"), sum(1, "sum");
    CHECK(launch_sum_of_squares(list_.data(), static_cast<int64_t>(list_.size()), partial_sums.data(), sum.data(),
                                nullptr) == cudaSuccess,
          where);
    return sum[0];
  }

 private:
  struct AnyHolder {
    virtual ~AnyHolder() = default;
  };
  template <typename T>
  struct Holder : AnyHolder {
    Holder(const char* name, const std::vector<T>& numbers, size_t shift) : buffer(name, numbers, shift) {}
    FlatBuffer<T> buffer;
  };

  std::vector<SquaredNumbers> list_;
  std::vector<std::unique_ptr<AnyHolder>> buffers_;
  int64_t blocks_ = 0;
};

// -6 .. 6 in turn: every square and every sum is exact.
template <typename T>
std::vector<T> whole_numbers(size_t n) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = cuda_host::from_double<T>(static_cast<double>(i % 13) - 6);
  return x;
}
double exact_sum(size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += (static_cast<double>(i % 13) - 6) * (static_cast<double>(i % 13) - 6);
  return sum;
}

template <typename T>
void check_sizes(size_t shift) {
  for (const size_t n : {0, 1, 7, 8, 9, 255, 2048, 2049, 16383, 16384, 16385, 40001}) {
    const std::string where = "n " + std::to_string(n) + " shift " + std::to_string(shift);
    Tensors tensors;
    tensors.add(whole_numbers<T>(n), shift);
    CHECK(tensors.sum(where) == exact_sum(n), where);
  }
}

}  // namespace

CUDA_HOST_TEST(sums_of_every_dtype_size_and_alignment) {
  for (const size_t shift : {0, 1}) {
    check_sizes<float>(shift);
    check_sizes<__nv_bfloat16>(shift);
    check_sizes<__half>(shift);
    check_sizes<double>(shift);
  }
}

CUDA_HOST_TEST(sums_of_more_tensors_than_a_launch_takes) {
  Tensors tensors;
  double expected = 0;
  for (size_t i = 0; i < 2 * kMostSquared + 5; ++i) {
    const size_t n = i % 100 == 99 ? 17000 : i * 7 % 60;  // some are empty
    i % 2 == 0 ? tensors.add(whole_numbers<float>(n)) : tensors.add(whole_numbers<__nv_bfloat16>(n));
    expected += exact_sum(n);
  }
  CHECK(tensors.sum("many") == expected, "many");
  CHECK(Tensors().sum("none") == 0, "none");
}

CUDA_HOST_TEST(sums_beyond_float32_and_of_infinities) {
  Tensors large;
  large.add(std::vector<float>(1024, std::numeric_limits<float>::max()));
  const double most = std::numeric_limits<float>::max();
  CHECK(large.sum("large") == 1024 * most * most, "large");
  for (const double special : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    Tensors tensors;
    std::vector<__half> x = whole_numbers<__half>(100);
    x[77] = cuda_host::from_double<__half>(special);
    tensors.add(x);
    const double sum = tensors.sum("special");
    CHECK(std::isnan(special) ? std::isnan(sum) : sum == special, "special");
  }
}

CUDA_HOST_TEST(sums_have_the_same_bits_in_every_order_of_the_threads) {
  static double first = 0;  // of the first order that ran
  Tensors tensors;
  tensors.add(cuda_host::normal<float>(20000, 1));
  tensors.add(cuda_host::normal<float>(333, 2), 1);
  const double sum = tensors.sum("normal");
  if (first == 0) first = sum;
  CHECK(sum == first && sum > 19000, "the sum of some 20333 squares is " + std::to_string(sum));
}

}  // namespace satformer::ops::cuda
