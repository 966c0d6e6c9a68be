#pragma once
// Products of small matrices in cache, for kernels that keep both factors near: a tile of R rows and two vectors of
// columns stays in registers while it is summed. acc_t is float or double. Compiled with the CPU kernels, once for each
// capability: everything here lives in the capability's own namespace, so that the linker cannot merge code for
// different machines.
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/macros/Macros.h>

#include <cstdint>

namespace satformer::ops::inline CPU_CAPABILITY {

// Columns of a tile.
template <typename acc_t>
constexpr std::int64_t kTileColumns = 2 * at::vec::Vectorized<acc_t>::size();

// Six rows times two vectors are twelve sums: enough to hide a multiply-add's latency, and with two vectors of b and
// one of a they fill AVX2's sixteen registers.
constexpr std::int64_t kTileRows = 6;

// Where the element of row r and step k lies.
template <typename acc_t>
struct Factor {
  const acc_t* data;
  std::int64_t row, step;
};

// c[r, :] = (kAdd: c[r, :] +) sum over k < steps of a[r, k] b[k, :], for R rows and kTileColumns columns.
template <int R, bool kAdd, typename acc_t>
C10_ALWAYS_INLINE void tile(acc_t* c, std::int64_t c_row, const Factor<acc_t>& a, const acc_t* b, std::int64_t b_row,
                            std::int64_t steps) {
  using Vec = at::vec::Vectorized<acc_t>;
  Vec sums[R][2];
  for (int r = 0; r < R; ++r) {
    sums[r][0] = kAdd ? Vec::loadu(c + r * c_row) : Vec(acc_t(0));
    sums[r][1] = kAdd ? Vec::loadu(c + r * c_row + Vec::size()) : Vec(acc_t(0));
  }
  const acc_t* x = a.data;
  for (std::int64_t k = 0; k < steps; ++k, x += a.step, b += b_row) {
    const Vec b0 = Vec::loadu(b), b1 = Vec::loadu(b + Vec::size());
    for (int r = 0; r < R; ++r) {
      const Vec ar(x[r * a.row]);
      sums[r][0] = at::vec::fmadd(ar, b0, sums[r][0]);
      sums[r][1] = at::vec::fmadd(ar, b1, sums[r][1]);
    }
  }
  for (int r = 0; r < R; ++r) {
    sums[r][0].store(c + r * c_row);
    sums[r][1].store(c + r * c_row + Vec::size());
  }
}

// The same for 1 .. kTileRows rows.
template <bool kAdd, typename acc_t>
void tile_of(std::int64_t rows, acc_t* c, std::int64_t c_row, const Factor<acc_t>& a, const acc_t* b,
             std::int64_t b_row, std::int64_t steps) {
  switch (rows) {
    case 1:
      return tile<1, kAdd>(c, c_row, a, b, b_row, steps);
    case 2:
      return tile<2, kAdd>(c, c_row, a, b, b_row, steps);
    case 3:
      return tile<3, kAdd>(c, c_row, a, b, b_row, steps);
    case 4:
      return tile<4, kAdd>(c, c_row, a, b, b_row, steps);
    case 5:
      return tile<5, kAdd>(c, c_row, a, b, b_row, steps);
    default:
      return tile<6, kAdd>(c, c_row, a, b, b_row, steps);
  }
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
