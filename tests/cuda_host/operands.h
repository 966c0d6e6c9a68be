#pragma once
// What the kernels under test read and write: numbers in guarded device memory beside the same numbers on the host, the
// dtype of a type, and where the rows of [B, T, H, hd] numbers lie.
#include <type_traits>
#include <vector>

#include "csrc/cuda/types.h"
#include "tests/cuda_host/testing.h"

namespace satformer::ops::cuda {

template <typename T>
constexpr DType dtype_of() {
  if (std::is_same_v<T, float>) return DType::kFloat32;
  if (std::is_same_v<T, double>) return DType::kFloat64;
  return std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16;
}

// `count` normal numbers times `size`, `shift` numbers off the 16-byte grid on the device.
template <typename T>
struct Numbers {
  std::vector<T> host;
  cuda_host::Buffer<T> device;

  Numbers(const char* name, int64_t count, unsigned seed, size_t shift = 0, double size = 1)
      : host(scaled(static_cast<size_t>(count), seed, size)), device(host, name, shift) {}
  static std::vector<T> scaled(size_t count, unsigned seed, double size) {
    std::vector<T> numbers = cuda_host::normal<T>(count, seed);
    for (T& x : numbers) x = cuda_host::from_double<T>(size * cuda_host::as_double(x));
    return numbers;
  }

  // The number as it was, whatever the device holds now.
  double operator[](size_t i) const { return cuda_host::as_double(host[i]); }
  T* data() { return device.data(); }
};

// [B, T, H, hd] numbers in a buffer.
struct View {
  Strides strides;
  size_t offset = 0, size = 0;  // elements before the first one; all elements of the buffer
  size_t shift = 0;             // elements by which the buffer's start leaves the 16-byte grid
  size_t at(int64_t b, int64_t t, int64_t h, int64_t i = 0) const {
    return offset + static_cast<size_t>(b * strides.b + t * strides.t + h * strides.h + i);
  }
};

inline size_t elements(const Sizes& s) { return static_cast<size_t>(s.B * s.T * s.H * s.hd); }
inline View contiguous(const Sizes& s) { return {{s.T * s.H * s.hd, s.H * s.hd, s.hd}, 0, elements(s)}; }
inline View heads_first(const Sizes& s) { return {{s.T * s.H * s.hd, s.hd, s.T * s.hd}, 0, elements(s)}; }

template <typename F>
void for_each_row(const Sizes& s, F f) {
  for (int64_t b = 0; b < s.B; ++b)
    for (int64_t t = 0; t < s.T; ++t)
      for (int64_t h = 0; h < s.H; ++h) f(b, t, h);
}

}  // namespace satformer::ops::cuda
