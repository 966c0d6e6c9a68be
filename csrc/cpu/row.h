#pragma once
// Rows of numbers in memory of any floating dtype, worked on in the arithmetic dtype acc_t (float or double): a row
// that is acc_t already is used where it lies, any other is converted by way of a buffer that stays in the first-level
// cache. So a kernel is compiled for two types and serves every mixture of dtypes. Compiled with the CPU kernels, once
// for each capability; see cpu/gate_row.h on the namespace.
#include <ATen/core/Tensor.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "csrc/cpu/scratch.h"

namespace satformer::ops::inline CPU_CAPABILITY {

template <typename acc_t, typename stored_t>
void widen(acc_t* out, const stored_t* x, std::int64_t n) {
  std::int64_t j = 0;
  if constexpr (std::is_same_v<acc_t, float> && at::vec::is_reduced_floating_point_v<stored_t>) {
    using Stored = at::vec::Vectorized<stored_t>;
    using Vec = at::vec::Vectorized<float>;
    for (; j + Stored::size() <= n; j += Stored::size()) {
      const auto [low, high] = at::vec::convert_to_float<stored_t>(Stored::loadu(x + j));
      low.store(out + j);
      high.store(out + j + Vec::size());
    }
  }
  for (; j < n; ++j) out[j] = static_cast<acc_t>(x[j]);
}

template <typename stored_t, typename acc_t>
void narrow(stored_t* out, const acc_t* x, std::int64_t n) {
  std::int64_t j = 0;
  if constexpr (std::is_same_v<acc_t, float> && at::vec::is_reduced_floating_point_v<stored_t>) {
    using Stored = at::vec::Vectorized<stored_t>;
    using Vec = at::vec::Vectorized<float>;
    for (; j + Stored::size() <= n; j += Stored::size()) {
      at::vec::convert_from_float<stored_t>(Vec::loadu(x + j), Vec::loadu(x + j + Vec::size())).store(out + j);
    }
  }
  for (; j < n; ++j) out[j] = static_cast<stored_t>(x[j]);
}

// A matrix [rows, n], contiguous in n, of any floating dtype. `pointer_t`: const void* to read, void* to write.
template <typename acc_t, typename pointer_t>
class Rows {
  template <typename stored_t>
  using Stored = std::conditional_t<std::is_const_v<std::remove_pointer_t<pointer_t>>, const stored_t, stored_t>;

 public:
  Rows(pointer_t data, at::ScalarType dtype, std::int64_t stride) : data_(data), dtype_(dtype), stride_(stride) {}

  bool defined() const { return data_ != nullptr; }
  bool direct() const { return dtype_ == c10::CppTypeToScalarType<acc_t>::value; }

  // Row i (from column `begin` on) where it lies; direct() must hold.
  Stored<acc_t>* place(std::int64_t i, std::int64_t begin = 0) const { return at<acc_t>(i, begin); }

  // n numbers of row i, read into the buffer unless they can be used where they lie.
  const acc_t* read(std::int64_t i, acc_t* buffer, std::int64_t n, std::int64_t begin = 0) const {
    if (direct()) return place(i, begin);
    load(i, buffer, n, begin);
    return buffer;
  }

  // The same, always into the buffer.
  void load(std::int64_t i, acc_t* buffer, std::int64_t n, std::int64_t begin = 0) const {
    switch (dtype_) {
      case at::kDouble:
        return widen(buffer, at<double>(i, begin), n);
      case at::kBFloat16:
        return widen(buffer, at<at::BFloat16>(i, begin), n);
      case at::kHalf:
        return widen(buffer, at<at::Half>(i, begin), n);
      default:
        return widen(buffer, at<float>(i, begin), n);
    }
  }

  // Where to compute n numbers of row i; write() must follow.
  acc_t* target(std::int64_t i, acc_t* buffer, std::int64_t begin = 0) const {
    return direct() ? place(i, begin) : buffer;
  }

  // Rounds n numbers to row i, unless they lie there already.
  void write(std::int64_t i, const acc_t* row, std::int64_t n, std::int64_t begin = 0) const {
    switch (dtype_) {
      case at::kDouble:
        return copy(at<double>(i, begin), row, n);
      case at::kBFloat16:
        return copy(at<at::BFloat16>(i, begin), row, n);
      case at::kHalf:
        return copy(at<at::Half>(i, begin), row, n);
      default:
        return copy(at<float>(i, begin), row, n);
    }
  }

 private:
  template <typename stored_t>
  Stored<stored_t>* at(std::int64_t i, std::int64_t begin) const {
    return static_cast<Stored<stored_t>*>(data_) + i * stride_ + begin;
  }
  template <typename stored_t>
  static void copy(stored_t* out, const acc_t* row, std::int64_t n) {
    if (static_cast<const void*>(out) != static_cast<const void*>(row)) narrow(out, row, n);
  }

  pointer_t data_;
  at::ScalarType dtype_;
  std::int64_t stride_;  // in elements
};

template <typename acc_t>
using ReadRows = Rows<acc_t, const void*>;
template <typename acc_t>
using WriteRows = Rows<acc_t, void*>;

// Of a tensor [rows, n] or [rows]; undefined tensors make undefined rows.
template <typename acc_t>
ReadRows<acc_t> reading(const at::Tensor& x) {
  if (!x.defined()) return {nullptr, at::kFloat, 0};
  return {x.const_data_ptr(), x.scalar_type(), x.stride(0)};
}
template <typename acc_t>
WriteRows<acc_t> writing(const at::Tensor& x) {
  if (!x.defined()) return {nullptr, at::kFloat, 0};
  return {x.mutable_data_ptr(), x.scalar_type(), x.stride(0)};
}

// A vector of `count` numbers, the rest 0. Where count is the vector's size, a plain load.
template <typename acc_t>
C10_ALWAYS_INLINE at::vec::Vectorized<acc_t> load(const acc_t* x, std::int64_t count) {
  using Vec = at::vec::Vectorized<acc_t>;
  return count == Vec::size() ? Vec::loadu(x) : Vec::loadu(x, count);
}

// step(j, count, k) over [0, n) in vectors: count numbers from j on (fewer than a vector at the end), k = 0 .. 3 in
// turn, for four sums that do not wait for one another.
template <typename acc_t, typename Step>
C10_ALWAYS_INLINE void for_each_vector(std::int64_t n, const Step& step) {
  constexpr std::int64_t kSize = at::vec::Vectorized<acc_t>::size();
  std::int64_t j = 0;
  for (; j + 4 * kSize <= n; j += 4 * kSize) {
    step(j, kSize, 0);
    step(j + kSize, kSize, 1);
    step(j + 2 * kSize, kSize, 2);
    step(j + 3 * kSize, kSize, 3);
  }
  for (; j + kSize <= n; j += kSize) step(j, kSize, 0);
  if (j < n) step(j, n - j, 1);
}

// The sum of four vectors' elements, in a fixed order.
template <typename acc_t>
acc_t sum_of(const at::vec::Vectorized<acc_t> (&sums)[4]) {
  using Vec = at::vec::Vectorized<acc_t>;
  return at::vec::vec_reduce_all<acc_t>([](Vec a, Vec b) { return a + b; }, (sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// A task smaller than this costs more to hand out than to do.
inline std::int64_t rows_a_task(std::int64_t numbers_a_row) {
  constexpr std::int64_t kNumbersATask = 32768;
  return std::max<std::int64_t>(1, kNumbersATask / std::max<std::int64_t>(numbers_a_row, 1));
}

}  // namespace satformer::ops::inline CPU_CAPABILITY

// REGISTER_DISPATCH leaves AVX-512 to the AVX2 code; kernels here want their own.
#ifdef CPU_CAPABILITY_AVX512
#define SATFORMER_REGISTER_DISPATCH(stub, kernel) ALSO_REGISTER_AVX512_DISPATCH(stub, kernel)
#else
#define SATFORMER_REGISTER_DISPATCH(stub, kernel) REGISTER_DISPATCH(stub, kernel)
#endif
