#pragma once
// What the test of gated_value_mix's kernels needs: inputs of every layout, and the formulas of
// csrc/ops/gated_value_mix.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/gated_value_mix_launch.h"
#include "tests/cuda_host/gate_formulas.h"
#include "tests/cuda_host/operands.h"

namespace satformer::ops::cuda {

using cuda_host::Buffer;
using cuda_host::Expected;
using cuda_host::kGateNames;
using cuda_host::kGates;
using cuda_host::logit_gradients;
using cuda_host::RowGates;

constexpr double kUlps = 16;  // a few roundings, and the errors of exp and tanh (about 2 units each)

enum class Layout { kContiguous, kPackedSlice, kHeadsFirst, kExpanded, kUnaligned };
constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kPackedSlice, Layout::kHeadsFirst, Layout::kExpanded,
                               Layout::kUnaligned};

inline View view_of(const Sizes& s, Layout layout) {
  View view = contiguous(s);
  const size_t row = static_cast<size_t>(s.H * s.hd);
  switch (layout) {
    case Layout::kPackedSlice:  // the last third of a projection
      view = {{3 * s.T * s.H * s.hd, 3 * s.H * s.hd, s.hd}, 2 * row, 3 * elements(s)};
      break;
    case Layout::kHeadsFirst:
      view = heads_first(s);
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
struct Values : Numbers<T> {
  View view;

  Values(const char* name, const View& where, unsigned seed)
      : Numbers<T>(name, static_cast<int64_t>(where.size), seed, where.shift), view(where) {}
  T* data() { return this->device.data() + view.offset; }
  double operator()(int64_t b, int64_t t, int64_t h, int64_t i = 0) const { return (*this)[view.at(b, t, h, i)]; }
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

}  // namespace satformer::ops::cuda
