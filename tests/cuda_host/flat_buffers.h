#pragma once
// Tensors of a list for the tests of kernels on lists: numbers in guarded memory, and as the launchers take them.
#include <string>
#include <vector>

#include "tests/cuda_host/operands.h"

namespace satformer::ops::cuda {

// n numbers of type T that begin `shift` numbers off the 16-byte grid.
template <typename T>
class FlatBuffer {
 public:
  FlatBuffer(const char* name, const std::vector<T>& numbers, size_t shift)
      : host_(numbers), device_(host_, name, shift) {}

  FlatNumbers<const void*> input() const { return {device_.data(), dtype_of<T>()}; }
  FlatNumbers<void*> output() { return {device_.data(), dtype_of<T>()}; }
  const T* data() const { return device_.data(); }

  // The number as it was.
  double operator[](size_t i) const { return cuda_host::as_double(host_[i]); }
  size_t size() const { return host_.size(); }
  bool is_unchanged() const {
    return host_.empty() || std::memcmp(device_.data(), host_.data(), host_.size() * sizeof(T)) == 0;
  }

 private:
  std::vector<T> host_;
  cuda_host::Buffer<T> device_;
};

}  // namespace satformer::ops::cuda
