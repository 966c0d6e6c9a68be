// gated_value_mix's CUDA kernels and launchers against the formulas of csrc/ops/gated_value_mix.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/gated_value_mix.cu"
#include "tests/cuda_host/gate_formulas.h"

namespace satformer::ops::cuda {
namespace {

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

size_t elements(const Sizes& s) { return static_cast<size_t>(s.B * s.T * s.H * s.hd); }

View contiguous(const Sizes& s) { return {{s.T * s.H * s.hd, s.H * s.hd, s.hd}, 0, elements(s)}; }

View view_of(const Sizes& s, Layout layout) {
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

// --- forward -------------------------------------------------------------------------------------------------------
template <typename T, typename L, typename I>
void check_forward(const Case& c) {
  Inputs<T, L, I> in(c);
  View out_view = contiguous(c.sizes);
  if (c.layout == Layout::kUnaligned) out_view.shift = 1;
  Buffer<T> out(out_view.size, "out", out_view.shift);
  std::vector<Expected> expected(out_view.size), in_place(in.v.host.size(), cuda_host::untouched());
  for_each_row(c.sizes, [&](int64_t b, int64_t t, int64_t h) {
    const double alpha = gates_of_token(in, b, t).alpha[static_cast<size_t>(h)];
    const double scale = in.scale.value(b, t, h), shift = in.shift.value(b, t, h);
    for (int64_t i = 0; i < c.sizes.hd; ++i) {
      const double v = in.v(b, t, h, i), first = in.first(b, t, h, i);
      const Expected e{v + (scale * alpha + shift) * first,
                       std::fabs(v) + (std::fabs(scale * alpha) + std::fabs(shift)) * std::fabs(first)};
      expected[out_view.at(b, t, h, i)] = e;
      in_place[in.v.view.at(b, t, h, i)] = e;
    }
  });
  MixArguments a{c.sizes,         dtype_of<T>(),    in.gates(),        out.data(),           in.v.data(),
                 in.first.data(), out_view.strides, in.v.view.strides, in.first.view.strides};
  CHECK(launch_mix(a, nullptr) == cudaSuccess, c.text());
  CHECK_CLOSE(c.text() + "out", out.data(), expected, kUlps);

  a.out = in.v.data();
  a.out_strides = in.v.view.strides;
  CHECK(launch_mix(a, nullptr) == cudaSuccess, c.text());
  for (size_t i = 0; i < in_place.size(); ++i) {  // what lies between the rows of a packed v stays
    if (in_place[i].untouched) in_place[i] = {cuda_host::as_double(in.v.host[i]), 0};
  }
  CHECK_CLOSE(c.text() + "v in place", in.v.device.data(), in_place, kUlps);
}

// --- backward ------------------------------------------------------------------------------------------------------
template <typename T, typename L, typename I>
void check_backward(const Case& c) {
  Inputs<T, L, I> in(c);
  const Sizes& s = c.sizes;
  const View rows{{s.T * s.H, s.H, 1}, 0, in.rows()}, values = contiguous(s);
  std::vector<Expected> first(values.size), logits(rows.size), scales(rows.size), shifts(rows.size);
  for (int64_t b = 0; b < s.B; ++b) {
    for (int64_t t = 0; t < s.T; ++t) {
      const RowGates gates = gates_of_token(in, b, t);
      std::vector<double> d_alpha, magnitude;
      double largest = 0;
      for (int64_t h = 0; h < s.H; ++h) {
        const double alpha = gates.alpha[static_cast<size_t>(h)], scale = in.scale.value(b, t, h);
        const double shift = in.shift.value(b, t, h);
        double dot = 0, size = 0;
        for (int64_t i = 0; i < s.hd; ++i) {
          const double g = in.grad(b, t, h, i), term = g * in.first(b, t, h, i);
          dot += term;
          size += std::fabs(term);
          first[values.at(b, t, h, i)] = {(scale * alpha + shift) * g,
                                          (std::fabs(scale * alpha) + std::fabs(shift)) * std::fabs(g)};
        }
        scales[rows.at(b, t, h)] = {alpha * dot, std::fabs(alpha) * size};
        shifts[rows.at(b, t, h)] = {dot, size};
        d_alpha.push_back(scale * dot);
        magnitude.push_back(std::fabs(scale) * size);
        largest = std::max(largest, magnitude.back());
      }
      const std::vector<double> d_logits = logit_gradients(c.gate, gates, d_alpha);
      for (int64_t h = 0; h < s.H; ++h) {
        const size_t j = static_cast<size_t>(h);
        const double spread = is_over_heads(c.gate) ? 1 + gates.softmax[j] * static_cast<double>(s.H) : 1;
        logits[rows.at(b, t, h)] = {d_logits[j], spread * (magnitude[j] + (is_over_heads(c.gate) ? largest : 0))};
      }
    }
  }
  const size_t shift = c.layout == Layout::kUnaligned ? 1 : 0;
  Buffer<T> grad_first(values.size, "grad_first_values", shift);
  Buffer<L> grad_logits(rows.size, "grad_logits");
  Buffer<float> scale_terms(rows.size, "scale_terms"), shift_terms(rows.size, "shift_terms"), dots(rows.size, "dots");
  // One rounding for each term of the sum over hd.
  const double dot_ulps = kUlps + static_cast<double>(s.hd);
  // Everything; then one output alone, another one in each call.
  static int turn = 0;
  for (int wanted : {15, 1 << turn++ % 4}) {
    MixBackwardArguments a{};
    a.sizes = s;
    a.dtype = dtype_of<T>();
    a.gates = in.gates();
    a.grad = in.grad.data();
    a.first_values = in.first.data();
    a.grad_strides = in.grad.view.strides;
    a.first_strides = in.first.view.strides;
    if (wanted & 1) a.grad_first_values = grad_first.data();
    if (wanted & 2) a.grad_logits = grad_logits.data();
    if (wanted & 4) a.scale_terms = scale_terms.data();
    if (wanted & 8) a.shift_terms = shift_terms.data();
    if (is_over_heads(c.gate) && a.grad_logits) a.dots = dots.data();
    for (size_t i = 0; i < rows.size; ++i) grad_logits[i] = L(NAN), scale_terms[i] = shift_terms[i] = NAN;
    for (size_t i = 0; i < values.size; ++i) grad_first[i] = T(NAN);
    CHECK(launch_mix_backward(a, nullptr) == cudaSuccess, c.text());
    const std::string text = c.text() + "outputs " + std::to_string(wanted) + ", ";
    if (wanted & 1) CHECK_CLOSE(text + "grad_first_values", grad_first.data(), first, kUlps);
    if (wanted & 2) CHECK_CLOSE(text + "grad_logits", grad_logits.data(), logits, dot_ulps);
    if (wanted & 4) CHECK_CLOSE(text + "scale_terms", scale_terms.data(), scales, dot_ulps);
    if (wanted & 8) CHECK_CLOSE(text + "shift_terms", shift_terms.data(), shifts, dot_ulps);
  }
}

template <typename T, typename L, typename I>
void check_both(const Case& c) {
  check_forward<T, L, I>(c);
  check_backward<T, L, I>(c);
}

constexpr Sizes kSizes[] = {{2, 5, 4, 64}, {1, 1, 1, 1},  {1, 3, 2, 3},   {3, 2, 5, 7},   {2, 3, 9, 16},
                            {1, 4, 3, 32}, {2, 2, 3, 37}, {1, 3, 2, 128}, {1, 2, 33, 65}, {1, 3, 2, 257},
                            {0, 3, 2, 8},  {2, 0, 2, 8},  {2, 3, 0, 8},   {2, 3, 2, 0}};

// Sizes, gates and layouts in turn: every pair of a gate and a layout, every size with every gate.
template <typename T, typename L>
void check_sizes() {
  int k = 0;
  for (const Sizes& sizes : kSizes) {
    for (const Gate gate : kGates) {
      Case c{sizes, gate, kLayouts[k++ % 5]};
      check_both<T, L, float>(c);
    }
  }
}

template <typename T>
void check_closed(int64_t hd) {
  const Sizes s{2, 3, 2, hd};
  const View view = contiguous(s);
  Values<T> v("v", view, 1);
  Buffer<T> out(view.size, "out"), grad_first(view.size, "grad_first_values");
  Buffer<float> logits(std::vector<float>(12, -1.f), "logits"), grad_logits(12, "grad_logits"), terms(12, "terms");
  logits[3] = 0.f;  // relu(0) = relu'(0) = 0
  const Gates gates{Gate::kRelu, {logits.data(), DType::kFloat32, {6, 2, 1}}, {}, {}};
  MixArguments a{s, dtype_of<T>(), gates, out.data(), v.data(), nullptr, view.strides, view.strides, view.strides};
  CHECK(launch_mix(a, nullptr) == cudaSuccess, "");
  CHECK(std::memcmp(out.data(), v.host.data(), view.size * sizeof(T)) == 0, "v must come out bit for bit");

  MixBackwardArguments b{};
  b.sizes = s;
  b.dtype = dtype_of<T>();
  b.gates = gates;
  b.grad_strides = b.first_strides = view.strides;
  b.grad_first_values = grad_first.data();
  b.grad_logits = grad_logits.data();
  b.scale_terms = terms.data();
  CHECK(launch_mix_backward(b, nullptr) == cudaSuccess, "");
  CHECK_CLOSE("grad_first_values", grad_first.data(), std::vector<Expected>(view.size, Expected{0, 0}), 0);
  CHECK_CLOSE("grad_logits", grad_logits.data(), std::vector<Expected>(12, Expected{0, 0}), 0);
  CHECK_CLOSE("scale_terms", terms.data(), std::vector<Expected>(12, Expected{0, 0}), 0);
}

}  // namespace

CUDA_HOST_TEST(float32_values_and_gradients) { check_sizes<float, float>(); }
CUDA_HOST_TEST(bfloat16_values_and_gradients) {
  check_sizes<__nv_bfloat16, float>();
  check_sizes<__nv_bfloat16, __nv_bfloat16>();
}
CUDA_HOST_TEST(float16_values_and_gradients) { check_sizes<__half, __half>(); }

CUDA_HOST_TEST(interventions) {
  int turn = 0;
  for (const Gate gate : kGates) {
    for (const Broadcast scale : {Broadcast::kNone, Broadcast::kScalar, Broadcast::kHeads, Broadcast::kTokens}) {
      for (const Broadcast shift : {Broadcast::kNone, Broadcast::kScalar, Broadcast::kHeads, Broadcast::kTokens}) {
        const Case c{{2, 3, 5, 17}, gate, Layout::kContiguous, scale, shift};
        switch (turn++ % 3) {
          case 0:
            check_both<float, float, float>(c);
            break;
          case 1:
            check_both<__nv_bfloat16, float, double>(c);
            break;
          default:
            check_both<__half, float, __half>(c);
        }
      }
    }
  }
}

// Neither first values nor, in the backward, grad are read: both pointers are null.
CUDA_HOST_TEST(closed_gates_read_nothing) {
  for (const int64_t hd : {1, 5, 64, 100}) {
    check_closed<float>(hd);
    check_closed<__nv_bfloat16>(hd);
    check_closed<__half>(hd);
  }
}

// Only the closed rows: their first values are not numbers.
CUDA_HOST_TEST(closed_rows_among_open_ones) {
  const Sizes s{1, 8, 3, 40};
  const View view = contiguous(s);
  Values<float> v("v", view, 1), first("first_values", view, 2), logits("logits", {{24, 3, 1}, 0, 24}, 4);
  Buffer<float> out(view.size, "out");
  std::vector<Expected> expected;
  for_each_row(s, [&](int64_t b, int64_t t, int64_t h) {
    const double alpha = std::max(logits(b, t, h), 0.0);
    for (int64_t i = 0; i < s.hd; ++i) {
      const double x = v(b, t, h, i), y = first(b, t, h, i);
      expected.push_back({x + alpha * y, alpha == 0 ? 0 : std::fabs(x) + std::fabs(alpha * y)});
      if (alpha == 0) first.device[view.at(b, t, h, i)] = NAN;
    }
  });
  const Gates gates{Gate::kRelu, {logits.data(), DType::kFloat32, logits.view.strides}, {}, {}};
  const MixArguments a{
      s, DType::kFloat32, gates, out.data(), v.data(), first.data(), view.strides, view.strides, view.strides};
  CHECK(launch_mix(a, nullptr) == cudaSuccess, "");
  CHECK_CLOSE("out", out.data(), expected, kUlps);
}

CUDA_HOST_TEST(float64_values_are_refused) {
  MixArguments a{};
  a.sizes = {1, 1, 1, 1};
  a.dtype = DType::kFloat64;
  CHECK(launch_mix(a, nullptr) == cudaErrorInvalidValue, "");
  MixBackwardArguments b{};
  b.sizes = {1, 1, 1, 1};
  b.dtype = DType::kFloat64;
  CHECK(launch_mix_backward(b, nullptr) == cudaErrorInvalidValue, "");
}

}  // namespace satformer::ops::cuda
