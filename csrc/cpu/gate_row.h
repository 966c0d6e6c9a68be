#pragma once
// The gates of one token, as rows of H_kv numbers in the arithmetic dtype (float or double). Compiled with the CPU
// kernels, once for each capability: everything here lives in the capability's own namespace, so that the linker
// cannot merge code for different machines.
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "csrc/ops/gate.h"

namespace satformer::ops::inline CPU_CAPABILITY {

// Rows of a [B, T, H_kv] tensor of any floating dtype and strides.
struct RowSource {
  const void* data = nullptr;  // null: absent
  at::ScalarType dtype = at::kFloat;
  std::int64_t stride_b = 0, stride_t = 0, stride_h = 0;
};

template <typename acc_t, typename stored_t>
void read_strided(acc_t* row, const stored_t* data, std::int64_t stride, std::int64_t n) {
  for (std::int64_t h = 0; h < n; ++h) row[h] = static_cast<acc_t>(data[h * stride]);
}

template <typename acc_t>
void read_row(acc_t* row, const RowSource& source, std::int64_t b, std::int64_t t, std::int64_t n) {
  const std::int64_t offset = b * source.stride_b + t * source.stride_t;
  switch (source.dtype) {
    case at::kDouble:
      return read_strided(row, static_cast<const double*>(source.data) + offset, source.stride_h, n);
    case at::kBFloat16:
      return read_strided(row, static_cast<const at::BFloat16*>(source.data) + offset, source.stride_h, n);
    case at::kHalf:
      return read_strided(row, static_cast<const at::Half*>(source.data) + offset, source.stride_h, n);
    default:
      return read_strided(row, static_cast<const float*>(source.data) + offset, source.stride_h, n);
  }
}

// Rounds a row to the dtype of `data` and stores it.
template <typename acc_t>
void write_row(void* data, at::ScalarType dtype, std::int64_t offset, const acc_t* row, std::int64_t n,
               std::int64_t stride = 1) {
  for (std::int64_t h = 0; h < n; ++h, offset += stride) {
    switch (dtype) {
      case at::kDouble:
        static_cast<double*>(data)[offset] = static_cast<double>(row[h]);
        break;
      case at::kBFloat16:
        static_cast<at::BFloat16*>(data)[offset] = static_cast<float>(row[h]);
        break;
      case at::kHalf:
        static_cast<at::Half*>(data)[offset] = static_cast<float>(row[h]);
        break;
      default:
        static_cast<float*>(data)[offset] = static_cast<float>(row[h]);
    }
  }
}

template <typename acc_t>
void sigmoid_row(acc_t* out, const acc_t* x, std::int64_t n) {
  using Vec = at::vec::Vectorized<acc_t>;
  at::vec::map([](Vec a) { return Vec(1) / (Vec(1) + a.neg().exp()); }, out, x, n);
}

template <typename acc_t>
void softmax_row(acc_t* out, const acc_t* x, std::int64_t n) {
  using Vec = at::vec::Vectorized<acc_t>;
  const Vec largest(at::vec::reduce_all<acc_t>([](Vec a, Vec b) { return at::vec::maximum(a, b); }, x, n));
  at::vec::map([largest](Vec a) { return (a - largest).exp(); }, out, x, n);
  const Vec sum(at::vec::reduce_all<acc_t>([](Vec a, Vec b) { return a + b; }, out, n));
  at::vec::map([sum](Vec a) { return a / sum; }, out, out, n);
}

// A token's gates. `sigmoid` and `softmax` are kept where the gradient needs them; each row holds n = H_kv numbers.
template <typename acc_t>
struct GateRow {
  std::int64_t n;
  acc_t *logits, *alpha, *sigmoid, *softmax;

  // logits -> alpha.
  void forward(Gate gate) {
    using Vec = at::vec::Vectorized<acc_t>;
    switch (gate) {
      case Gate::kRelu:
        return at::vec::map([](Vec a) { return at::vec::maximum(a, Vec(0)); }, alpha, logits, n);
      case Gate::kSigmoid:
        return sigmoid_row(alpha, logits, n);
      case Gate::kTanh:
        return at::vec::map([](Vec a) { return a.tanh(); }, alpha, logits, n);
      case Gate::kIdentity:
        return at::vec::map([](Vec a) { return a; }, alpha, logits, n);
      case Gate::kSoftmax:
        softmax_row(softmax, logits, n);
        return at::vec::map([heads = Vec(static_cast<acc_t>(n))](Vec p) { return p * heads; }, alpha, softmax, n);
      case Gate::kSoftmaxSigmoid:
        softmax_row(softmax, logits, n);
        sigmoid_row(sigmoid, logits, n);
        return at::vec::map2([heads = Vec(static_cast<acc_t>(n))](Vec p, Vec s) { return p * s * heads; }, alpha,
                             softmax, sigmoid, n);
    }
  }

  // Whether the gradient of alpha[h] can reach the logits at all; relu'(0) = 0.
  bool closed(Gate gate, std::int64_t h) const { return gate == Gate::kRelu && logits[h] <= acc_t(0); }

  // grad: the gradient of alpha, replaced by that of the logits. After forward().
  void backward(Gate gate, acc_t* grad) const {
    switch (gate) {
      case Gate::kRelu:
        for (std::int64_t h = 0; h < n; ++h) grad[h] = closed(gate, h) ? acc_t(0) : grad[h];
        return;
      case Gate::kSigmoid:
        for (std::int64_t h = 0; h < n; ++h) grad[h] *= alpha[h] * (acc_t(1) - alpha[h]);
        return;
      case Gate::kTanh:
        for (std::int64_t h = 0; h < n; ++h) grad[h] *= acc_t(1) - alpha[h] * alpha[h];
        return;
      case Gate::kIdentity:
        return;
      case Gate::kSoftmax: {  // alpha_j (g_j - sum_h p_h g_h)
        const acc_t mean = dot(softmax, grad);
        for (std::int64_t h = 0; h < n; ++h) grad[h] = alpha[h] * (grad[h] - mean);
        return;
      }
      case Gate::kSoftmaxSigmoid: {  // alpha_j g_j (2 - s_j) - p_j sum_h alpha_h g_h
        const acc_t sum = dot(alpha, grad);
        for (std::int64_t h = 0; h < n; ++h) {
          grad[h] = alpha[h] * grad[h] * (acc_t(2) - sigmoid[h]) - softmax[h] * sum;
        }
        return;
      }
    }
  }

 private:
  acc_t dot(const acc_t* a, const acc_t* b) const {
    acc_t sum = 0;
    for (std::int64_t h = 0; h < n; ++h) sum += a[h] * b[h];
    return sum;
  }
};

}  // namespace satformer::ops::inline CPU_CAPABILITY
