#pragma once
// What the test of gated_value_mix's kernels needs: inputs of every layout, and the formulas of
// csrc/ops/gated_value_mix.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/gated_value_mix_launch.h"
#include "tests/cuda_host/gate_formulas.h"

namespace satformer::ops::cuda {

using cuda_host::Buffer;
using cuda_host::Expected;
using cuda_host::kGateNames;
using cuda_host::kGates;
using cuda_host::logit_gradients;
using cuda_host::RowGates;

constexpr double kUlps = 16;  // a few roundings, and the errors of exp and tanh (about 2 units each)

template <typename T>
constexpr DType dtype_of() {
  if (std::is_same_v<T, float>) return DType::kFloat32;
  if (std::is_same_v<T, double>) return DType::kFloat64;
  return std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16;
}

enum class Layout { kContiguous, kPackedSlice, kHeadsFirst, kExpanded, kUnaligned };
constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kPackedSlice, Layout::kHeadsFirst, Layout::kExpanded,
                               Layout::kUnaligned};

struct View {
  Strides strides;
  size_t offset, size;  // elements before the first one; all elements of the buffer
  size_t shift = 0;     // elements by which the buffer's start leaves the 16-byte grid
  size_t at(int64_t b, int64_t t, int64_t h, int64_t i = 0) const {
    return offset + static_cast<size_t>(b * strides.b + t * strides.t + h * strides.h + i);
  }
};

inline size_t elements(const Sizes& s) { return static_cast<size_t>(s.B * s.T * s.H * s.hd); }

inline View contiguous(const Sizes& s) { return {{s.T * s.H * s.hd, s.H * s.hd, s.hd}, 0, elements(s)}; }

inline View view_of(const Sizes& s, Layout layout) {
  View view = contiguous(s);
  const size_t row = static_cast<size_t>(s.H * s.hd);
  switch (layout) {
    case Layout::kPackedSlice:  // the last third of a projection
      view = {{3 * s.T * s.H * s.hd, 3 * s.H * s.hd, s.hd}, 2 * row, 3 * elements(s)};
      break;
    case Layout::kHeadsFirst:
      view.strides = {s.T * s.H * s.hd, s.hd, s.T * s.hd};
      break;
    case Layout::kExpanded:  // over batch and tokens; for what is only read
      view = {{0, 0, s.hd}, 0, row};
      break;
    case Layout::kUnaligned:
      view.shift = 1;
      break;
    default:
      break;
  }
  return view;
}

// Numbers in device memory, and where each of them lies.
template <typename T>
struct Values {
  View view;
  std::vector<T> host;
  Buffer<T> device;

  Values(const char* name, const View& where, unsigned seed)
      : view(where), host(cuda_host::normal<T>(where.size, seed)), device(host, name, where.shift) {}
  T* data() { return device.data() + view.offset; }
  double operator()(int64_t b, int64_t t, int64_t h, int64_t i = 0) const {
    return cuda_host::as_double(host[view.at(b, t, h, i)]);
  }
};

enum class Broadcast { kNone, kScalar, kHeads, kTokens };

// [B, T, H] numbers of type T under a broadcast; absent for kNone.
template <typename T>
struct Intervention : Values<T> {
  bool given;
  double otherwise;

  Intervention(const char* name, const Sizes& s, Broadcast broadcast, double otherwise_, unsigned seed)
      : Values<T>(name, where(s, broadcast), seed), given(broadcast != Broadcast::kNone), otherwise(otherwise_) {}
  static View where(const Sizes& s, Broadcast broadcast) {
    if (broadcast == Broadcast::kHeads) return {{0, 0, 1}, 0, static_cast<size_t>(s.H)};
    if (broadcast == Broadcast::kTokens) return {{s.T, 1, 0}, 0, static_cast<size_t>(s.B * s.T)};
    return {{0, 0, 0}, 0, 1};
  }
  double value(int64_t b, int64_t t, int64_t h) const { return given ? (*this)(b, t, h) : otherwise; }
  GateSource source() { return {given ? this->data() : nullptr, dtype_of<T>(), this->view.strides}; }
};

struct Case {
  Sizes sizes;
  Gate gate = Gate::kRelu;
  Layout layout = Layout::kContiguous;
  Broadcast scale = Broadcast::kNone, shift = Broadcast::kNone;
  std::string text() const {
    return std::string(kGateNames[static_cast<int>(gate)]) + " B " + std::to_string(sizes.B) + " T " +
           std::to_string(sizes.T) + " H " + std::to_string(sizes.H) + " hd " + std::to_string(sizes.hd) + " layout " +
           std::to_string(static_cast<int>(layout)) + " scale " + std::to_string(static_cast<int>(scale)) + " shift " +
           std::to_string(static_cast<int>(shift)) + ": ";
  }
};

// T: the values' type, L: the logits', I: the intervention's.
template <typename T, typename L, typename I>
struct Inputs {
  Case c;
  Values<T> v, first, grad;
  Values<L> logits;
  Intervention<I> scale, shift;

  explicit Inputs(const Case& test_case)
      : c(test_case),
        v("v", view_of(c.sizes, c.layout == Layout::kExpanded ? Layout::kContiguous : c.layout), 1),
        first("first_values", view_of(c.sizes, c.layout), 2),
        grad("grad", view_of(c.sizes, c.layout), 3),
        // Every second column of a wider matrix.
        logits("logits", {{2 * c.sizes.T * c.sizes.H, 2 * c.sizes.H, 2}, 1, 2 * rows() + 1}, 4),
        scale("scale", c.sizes, c.scale, 1, 5),
        shift("shift", c.sizes, c.shift, 0, 6) {}

  size_t rows() const { return static_cast<size_t>(c.sizes.B * c.sizes.T * c.sizes.H); }
  Gates gates() {
    return {c.gate, {logits.data(), dtype_of<L>(), logits.view.strides}, scale.source(), shift.source()};
  }
};

// --- the formulas ------------------------------------------------------------------------------------------------
template <typename In>
RowGates gates_of_token(const In& in, int64_t b, int64_t t) {
  std::vector<double> logits;
  for (int64_t h = 0; h < in.c.sizes.H; ++h) logits.push_back(in.logits(b, t, h));
  return cuda_host::gates_of_logits(in.c.gate, logits);
}

template <typename F>
void for_each_row(const Sizes& s, F f) {
  for (int64_t b = 0; b < s.B; ++b)
    for (int64_t t = 0; t < s.T; ++t)
      for (int64_t h = 0; h < s.H; ++h) f(b, t, h);
}

}  // namespace satformer::ops::cuda
