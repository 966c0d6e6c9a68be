#pragma once
// Matrices of rows for the tests of kernels on rows: numbers in guarded memory, and as the launchers take them.
#include <string>
#include <vector>

#include "tests/cuda_host/operands.h"

namespace satformer::ops::cuda {

// How rows lie: each where the last one ended, with a gap, or with the first one off the 16-byte grid.
enum class RowLayout { kDense, kGap, kUnaligned };
constexpr RowLayout kRowLayouts[] = {RowLayout::kDense, RowLayout::kGap, RowLayout::kUnaligned};

// "rows 5 n 8 layout 0: "
inline std::string text_of(int64_t rows, const char* name, int64_t n, RowLayout layout) {
  return "rows " + std::to_string(rows) + " " + name + " " + std::to_string(n) + " layout " +
         std::to_string(static_cast<int>(layout)) + ": ";
}

// [rows, n] numbers of type T: normal for an input, unwritten for an output.
template <typename T>
class RowMatrix {
 public:
  RowMatrix(const char* name, int64_t rows, int64_t n, RowLayout layout, unsigned seed)
      : rows_(rows),
        n_(n),
        stride_(n + (layout == RowLayout::kGap ? 8 : 0)),
        host_(cuda_host::normal<T>(static_cast<size_t>(rows * stride_), seed)),
        device_(host_, name, layout == RowLayout::kUnaligned ? 1 : 0) {}
  RowMatrix(const char* name, int64_t rows, int64_t n, RowLayout layout)
      : rows_(rows),
        n_(n),
        stride_(n + (layout == RowLayout::kGap ? 8 : 0)),
        device_(static_cast<size_t>(rows * stride_), name, layout == RowLayout::kUnaligned ? 1 : 0) {}

  Input input() const { return matrix<const void*>(device_.data(), dtype_of<T>(), stride_); }
  Output output() { return matrix<void*>(device_.data(), dtype_of<T>(), stride_); }
  const T* data() const { return device_.data(); }

  // The input's number, and where the device holds it now.
  double operator()(int64_t i, int64_t j) const { return cuda_host::as_double(host_[place(i, j)]); }
  double now(int64_t i, int64_t j) const { return cuda_host::as_double(device_[place(i, j)]); }

  // Expectations for every element: `of(i, j)` for each number, no write to what lies between the rows.
  template <typename F>
  std::vector<cuda_host::Expected> expect(const F& of) const {
    std::vector<cuda_host::Expected> expected(device_.size(), cuda_host::untouched());
    for (size_t k = 0; k < host_.size(); ++k) expected[k] = {cuda_host::as_double(host_[k]), 0};
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < n_; ++j) expected[place(i, j)] = of(i, j);
    return expected;
  }

 private:
  size_t place(int64_t i, int64_t j) const { return static_cast<size_t>(i * stride_ + j); }

  int64_t rows_, n_, stride_;
  std::vector<T> host_;
  cuda_host::Buffer<T> device_;
};

}  // namespace satformer::ops::cuda
