// Lists of dense tensors in kernels: a thread takes eight neighbouring numbers at a time, in instructions of 16 bytes
// where memory allows it, and has them in acc_t (float or double). No torch headers.
#pragma once
#include <cstdint>
#include <type_traits>

#include "csrc/cuda/device_common.cuh"
#include "csrc/cuda/vector_io.cuh"

namespace satformer::ops::cuda {

constexpr int kFlatThreads = 256;

// Numbers [begin, begin + 8) of a tensor of n; 0 from n on.
template <typename acc_t>
__device__ __forceinline__ void load(acc_t (&out)[kEight], FlatNumbers<const void*> x, int64_t begin, int64_t n) {
  with_any_type(x.dtype, [&](auto type) {
    load_up_to(out, static_cast<const TypeOf<decltype(type)>*>(x.data) + begin, n - begin);
  });
}

// The same of a tensor that is computed in acc_t: float64 where acc_t is double, never otherwise.
template <typename acc_t>
__device__ __forceinline__ void load_own(acc_t (&out)[kEight], FlatNumbers<void*> x, int64_t begin, int64_t n) {
  if constexpr (std::is_same_v<acc_t, double>) {
    load_up_to(out, static_cast<const double*>(x.data) + begin, n - begin);
  } else {
    with_type(x.dtype, [&](auto type) {
      load_up_to(out, static_cast<const TypeOf<decltype(type)>*>(x.data) + begin, n - begin);
    });
  }
}
template <typename acc_t>
__device__ __forceinline__ void store_own(FlatNumbers<void*> x, const acc_t (&numbers)[kEight], int64_t begin,
                                          int64_t n) {
  if constexpr (std::is_same_v<acc_t, double>) {
    store_up_to(static_cast<double*>(x.data) + begin, numbers, n - begin);
  } else {
    with_type(x.dtype, [&](auto type) {
      store_up_to(static_cast<TypeOf<decltype(type)>*>(x.data) + begin, numbers, n - begin);
    });
  }
}

// The tensor of a block: the last entry of the table that begins at or before it.
template <typename Table>
__device__ __forceinline__ int tensor_of_block(const Table& table, int block) {
  int low = 0, high = table.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.first_block[middle] <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace satformer::ops::cuda
