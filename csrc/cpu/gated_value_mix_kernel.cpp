// CPU kernels of gated_value_mix, compiled once for each CPU capability (see cpu/gate_row.h on what may stand here).
// A token is the unit of work: its H_kv gates are computed once, then its H_kv rows of hd values are mixed. What a
// token gets does not depend on the number of threads.
#include "csrc/cpu/gated_value_mix_kernel.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <cstdint>

#include "csrc/cpu/gate_row.h"
#include "csrc/cpu/value_row.h"

namespace at::native {
namespace {

using satformer::ops::dot_row;
using satformer::ops::Gate;
using satformer::ops::GateArguments;
using satformer::ops::GatedValueMixGradients;
using satformer::ops::GateRow;
using satformer::ops::mix_row;
using satformer::ops::read_row;
using satformer::ops::reading;
using satformer::ops::row_source;
using satformer::ops::RowSource;
using satformer::ops::scale_row;
using satformer::ops::write_row;
using satformer::ops::writing;

struct Gates {
  explicit Gates(const GateArguments& arguments)
      : gate(arguments.gate),
        logits(row_source(arguments.logits)),
        scale(row_source(arguments.scale)),
        shift(row_source(arguments.shift)) {}
  Gate gate;
  RowSource logits, scale, shift;
};

// A thread's rows of H_kv numbers. (No std::vector: its code for this capability could be linked in elsewhere.)
template <typename acc_t>
class TokenGates {
 public:
  explicit TokenGates(int64_t n)
      : memory_(static_cast<acc_t*>(c10::alloc_cpu(kRows * std::max<int64_t>(n, 1) * sizeof(acc_t)))),
        row{n, memory_, memory_ + n, memory_ + 2 * n, memory_ + 3 * n},
        mixed(memory_ + 4 * n),
        scale(memory_ + 5 * n),
        shift(memory_ + 6 * n),
        dot(memory_ + 7 * n) {}
  TokenGates(const TokenGates&) = delete;
  TokenGates& operator=(const TokenGates&) = delete;
  ~TokenGates() { c10::free_cpu(memory_); }

  // Fills row, scale, shift and mixed = scale * alpha + shift.
  void load(const Gates& gates, int64_t b, int64_t t) {
    read_row(row.logits, gates.logits, b, t, row.n);
    row.forward(gates.gate);
    for (int64_t h = 0; h < row.n; ++h) mixed[h] = row.alpha[h];
    if (gates.scale.data) {
      read_row(scale, gates.scale, b, t, row.n);
      for (int64_t h = 0; h < row.n; ++h) mixed[h] *= scale[h];
    }
    if (gates.shift.data) {
      read_row(shift, gates.shift, b, t, row.n);
      for (int64_t h = 0; h < row.n; ++h) mixed[h] += shift[h];
    }
  }

 private:
  static constexpr int64_t kRows = 8;
  acc_t* memory_;

 public:
  GateRow<acc_t> row;
  acc_t *mixed, *scale, *shift, *dot;
};

// A task smaller than this costs more to hand out than to do.
constexpr int64_t kValuesATask = 32768;

int64_t tokens_a_task(int64_t values_a_token) {
  return std::max<int64_t>(1, kValuesATask / std::max<int64_t>(values_a_token, 1));
}

template <typename scalar_t>
void mix(const Tensor& out_tensor, const Tensor& v_tensor, const Tensor& first_tensor, const Gates& gates) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t T = v_tensor.size(1), heads = v_tensor.size(2), hd = v_tensor.size(3);
  const auto out = writing<scalar_t>(out_tensor);
  const auto v = reading<scalar_t>(v_tensor), first = reading<scalar_t>(first_tensor);
  at::parallel_for(0, v_tensor.size(0) * T, tokens_a_task(heads * hd), [&](int64_t begin, int64_t end) {
    TokenGates<acc_t> token(heads);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / T, t = i % T;
      token.load(gates, b, t);
      for (int64_t h = 0; h < heads; ++h) {
        mix_row(out.row(b, t, h), v.row(b, t, h), first.row(b, t, h), token.mixed[h], hd);
      }
    }
  });
}

// Which gradients are wanted; null where not.
template <typename scalar_t>
struct GradientRows {
  using acc_t = at::opmath_type<scalar_t>;
  explicit GradientRows(const GatedValueMixGradients& out)
      : first_values(out.first_values.defined() ? out.first_values.mutable_data_ptr<scalar_t>() : nullptr),
        logits(out.logits.defined() ? out.logits.mutable_data_ptr() : nullptr),
        logits_dtype(out.logits.defined() ? out.logits.scalar_type() : kFloat),
        scale_terms(out.scale_terms.defined() ? out.scale_terms.mutable_data_ptr<acc_t>() : nullptr),
        shift_terms(out.shift_terms.defined() ? out.shift_terms.mutable_data_ptr<acc_t>() : nullptr) {}
  scalar_t* first_values;
  void* logits;
  ScalarType logits_dtype;
  acc_t *scale_terms, *shift_terms;
};

// Whether anything multiplies the row's d alpha' = sum over hd of grad * first_values.
template <typename scalar_t, typename acc_t>
bool needs_dot(const GradientRows<scalar_t>& out, const Gates& gates, const TokenGates<acc_t>& token, int64_t h) {
  const bool reaches_logits =
      out.logits && !token.row.closed(gates.gate, h) && !(gates.scale.data && token.scale[h] == acc_t(0));
  return reaches_logits || out.shift_terms || (out.scale_terms && token.row.alpha[h] != acc_t(0));
}

// From token.dot = d alpha' of token i.
template <typename scalar_t, typename acc_t>
void write_gate_gradients(const GradientRows<scalar_t>& out, const Gates& gates, TokenGates<acc_t>& token, int64_t i) {
  const int64_t n = token.row.n;
  for (int64_t h = 0; h < n; ++h) {
    if (out.shift_terms) out.shift_terms[i * n + h] = token.dot[h];
    if (out.scale_terms) out.scale_terms[i * n + h] = token.row.alpha[h] * token.dot[h];
    if (gates.scale.data) token.dot[h] *= token.scale[h];
  }
  if (!out.logits) return;
  token.row.backward(gates.gate, token.dot);
  write_row(out.logits, out.logits_dtype, i * n, token.dot, n);
}

template <typename scalar_t>
void mix_backward(const GatedValueMixGradients& out_tensors, const Tensor& grad_tensor, const Tensor& first_tensor,
                  const Gates& gates) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t T = grad_tensor.size(1), heads = grad_tensor.size(2), hd = grad_tensor.size(3);
  const GradientRows<scalar_t> out(out_tensors);
  const auto grad = reading<scalar_t>(grad_tensor), first = reading<scalar_t>(first_tensor);
  at::parallel_for(0, grad_tensor.size(0) * T, tokens_a_task(heads * hd), [&](int64_t begin, int64_t end) {
    TokenGates<acc_t> token(heads);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / T, t = i % T;
      token.load(gates, b, t);
      for (int64_t h = 0; h < heads; ++h) {
        const scalar_t* g = grad.row(b, t, h);
        if (out.first_values) scale_row(out.first_values + (i * heads + h) * hd, g, token.mixed[h], hd);
        token.dot[h] = needs_dot(out, gates, token, h) ? dot_row<acc_t>(g, first.row(b, t, h), hd) : acc_t(0);
      }
      write_gate_gradients(out, gates, token, i);
    }
  });
}

void mix_kernel(const Tensor& out, const Tensor& v, const Tensor& first_values, const GateArguments& arguments) {
  const Gates gates(arguments);
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, v.scalar_type(), "gated_value_mix",
                                  [&] { mix<scalar_t>(out, v, first_values, gates); });
}

void mix_backward_kernel(const GatedValueMixGradients& out, const Tensor& grad, const Tensor& first_values,
                         const GateArguments& arguments) {
  const Gates gates(arguments);
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, grad.scalar_type(), "gated_value_mix_backward",
                                  [&] { mix_backward<scalar_t>(out, grad, first_values, gates); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_gated_value_mix_stub, &mix_kernel)
ALSO_REGISTER_AVX512_DISPATCH(satformer_gated_value_mix_backward_stub, &mix_backward_kernel)
#else
REGISTER_DISPATCH(satformer_gated_value_mix_stub, &mix_kernel)
REGISTER_DISPATCH(satformer_gated_value_mix_backward_stub, &mix_backward_kernel)
#endif
}  // namespace at::native
