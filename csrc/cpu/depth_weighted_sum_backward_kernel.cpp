// CPU kernels of depth_weighted_sum's gradients (formulas: csrc/ops/depth_weighted_sum.h), compiled once for each CPU
// capability.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/depth_token.h"
#include "csrc/cpu/depth_weighted_sum_kernel.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT: kernels must live in this namespace

// A block of tokens: gradients of what belongs to each token, partial sums of what all tokens share.
template <typename scalar_t>
class BlockBackward {
  using acc_t = at::opmath_type<scalar_t>;
  using Vec = vec::Vectorized<acc_t>;

 public:
  BlockBackward(const DepthSumData& data, const DepthSumGradientData& out)
      : S(data.sources),
        C(data.ways),
        d(data.d),
        data_(data),
        out_(out),
        token_(data, /*with_base=*/false),
        incoming_(C),
        grads_(C),
        sums_(C),
        space_((2 * C + 2) * d),
        dots_(S * C),
        factors_(S * C),
        ones_(C),
        results_(S) {
    for (int64_t c = 0; c < C; ++c) ones_[c] = acc_t(1);
  }

  // Partial sums, zeroed by the caller: weights [C, S] (static ones), norm_weights [S, d], output_norm_weights [C, d].
  void run(int64_t b, int64_t t, acc_t* weights, acc_t* norm_weights, acc_t* output_norm_weights) {
    b_ = b, t_ = t, i_ = b * data_.T + t;
    token_.load(b, t);
    load_gradients(output_norm_weights);
    if (out_.base) base_gradient();
    const acc_t* w = token_.weights(i_);
    for (int64_t j = 0; j < S; ++j) {
      for (int64_t c = 0; c < C; ++c) factors_[j * C + c] = w[c * S + j] * token_.inverse(j);
    }
    if (out_.weights || out_.inverse_rms) weight_gradients(w, weights);
    if (data_.norm_weights && (out_.sources || norm_weights)) {
      for (int64_t j = 0; j < S; ++j) normed_source_gradient(j, norm_weights ? norm_weights + j * d : nullptr);
    } else if (out_.sources) {
      source_gradients();
    }
  }

 private:
  acc_t* space(int64_t row) const { return space_.get() + row * d; }

  // incoming_: the gradients of out_c; grads_: those of sum_c.
  void load_gradients(acc_t* output_norm_weights) {
    for (int64_t c = 0; c < C; ++c) {
      grads_[c] = incoming_[c] = widened<acc_t>(row_of<scalar_t>(out_.grads[c], b_, t_), space(c), d);
      sums_[c] = space(C + c);
    }
    if (!data_.output_norm_weights) return;
    token_.sum(sums_.get());
    for (int64_t c = 0; c < C; ++c) {
      // With y = p grad:  G = r y - s r^3 mean(s y);  d p += grad r s.
      const acc_t *p = acc_row<acc_t>(data_.output_norm_weights[c], 0), *grad = incoming_[c];
      acc_t *s = sums_[c], *y = space(2 * C);
      const acc_t r = token_.inverse_of_sum(s);
      vec::map2([](Vec g, Vec weight) { return g * weight; }, y, grad, p, d);
      const acc_t slope = r * r * r * dot(s, y, d) / static_cast<acc_t>(d);
      if (output_norm_weights) {
        acc_t* sum = output_norm_weights + c * d;
        vec::map3([r = Vec(r)](Vec old, Vec g, Vec x) { return vec::fmadd(g, r * x, old); }, sum, sum, grad, s, d);
      }
      vec::map2([r = Vec(r), slope = Vec(slope)](Vec a, Vec x) { return r * a - slope * x; }, s, y, s, d);
      grads_[c] = s;
    }
  }

  void base_gradient() {
    scalar_t* out = static_cast<scalar_t*>(out_.base) + i_ * d;
    acc_t* row = in_place(out, space(2 * C));
    combine(1, &row, incoming_.get(), ones_.get(), C, C, d, /*add=*/false);
    store_row(out, row, d);
  }

  void weight_gradients(const acc_t* w, acc_t* partial) {
    dots(dots_.get(), C, S, token_.rows.get(), C, grads_.get(), d);
    for (int64_t j = 0; j < S; ++j) {
      const acc_t r = token_.inverse(j);
      acc_t to_inverse = 0;
      for (int64_t c = 0; c < C; ++c) {
        const acc_t value = dots_[j * C + c];
        to_inverse += w[c * S + j] * value;
        if (partial) {
          partial[c * S + j] += r * value;
        } else if (out_.weights) {
          static_cast<acc_t*>(out_.weights)[(i_ * C + c) * S + j] = r * value;
        }
      }
      if (out_.inverse_rms) static_cast<acc_t*>(out_.inverse_rms)[j * data_.B * data_.T + i_] = to_inverse;
    }
  }

  // Without source norms: all sources from the C gradients at once, a few rows of scratch at a time where they convert.
  void source_gradients() {
    constexpr bool kInPlace = std::is_same_v<scalar_t, acc_t>;
    const int64_t group = kInPlace ? S : 1;
    for (int64_t j = 0; j < S; j += group) {
      for (int64_t k = 0; k < group; ++k) results_[k] = result_row(j + k);
      combine(group, results_.get(), grads_.get(), factors_.get() + j * C, C, C, d, out_.add_to_sources);
      for (int64_t k = 0; k < group; ++k) store_row(row_of<scalar_t>(out_.sources[j + k], b_, t_), results_[k], d);
    }
  }

  // With them, q = sum_c w_cj r_j G_c:  d x_j = g_j q,  d g_j += x_j q.
  void normed_source_gradient(int64_t j, acc_t* norm_weight) {
    acc_t* q = space(2 * C);
    combine(1, &q, grads_.get(), factors_.get() + j * C, C, C, d, /*add=*/false);
    if (norm_weight) {
      const acc_t* x = token_.source(j, space(2 * C + 1));
      vec::map3([](Vec old, Vec a, Vec b) { return vec::fmadd(a, b, old); }, norm_weight, norm_weight, x, q, d);
    }
    if (!out_.sources) return;
    const acc_t* g = acc_row<acc_t>(data_.norm_weights[j], 0);
    acc_t* row = result_row(j);
    if (out_.add_to_sources) {
      vec::map3([](Vec old, Vec a, Vec b) { return vec::fmadd(a, b, old); }, row, row, g, q, d);
    } else {
      vec::map2([](Vec a, Vec b) { return a * b; }, row, g, q, d);
    }
    store_row(row_of<scalar_t>(out_.sources[j], b_, t_), row, d);
  }

  // Where the gradient of source j is computed; holds what it is added to.
  acc_t* result_row(int64_t j) const {
    scalar_t* out = row_of<scalar_t>(out_.sources[j], b_, t_);
    acc_t* row = in_place(out, space(2 * C + 1));
    if (out_.add_to_sources) widened<acc_t>(out, row, d);
    return row;
  }
  static acc_t* in_place(scalar_t* out, [[maybe_unused]] acc_t* space) {
    if constexpr (std::is_same_v<scalar_t, acc_t>) {
      return out;
    } else {
      return space;
    }
  }

  const int64_t S, C, d;
  const DepthSumData& data_;
  const DepthSumGradientData& out_;
  int64_t b_ = 0, t_ = 0, i_ = 0;
  DepthToken<scalar_t, acc_t> token_;
  Scratch<const acc_t*> incoming_, grads_;  // [C]
  Scratch<acc_t*> sums_;                    // [C]
  Scratch<acc_t> space_;                    // C gradients, C sums, 2 others
  Scratch<acc_t> dots_, factors_, ones_;    // [S, C], [S, C], [C]
  Scratch<acc_t*> results_;                 // [S]
};

template <typename scalar_t>
void sum_backward_kernel(const DepthSumData& data, const DepthSumGradientData& out) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t S = data.sources, C = data.ways, d = data.d;
  const TokenBlocks blocks(data.B * data.T);
  // A partial result: static weights [C, S], source norms [S, d], output norms [C, d], each where wanted.
  const int64_t weights = out.weights && !data.weights_per_token ? C * S : 0, norms = out.norm_weights ? S * d : 0,
                output_norms = out.output_norm_weights ? C * d : 0, all = weights + norms + output_norms;
  Scratch<acc_t> partials(blocks.count() * all);
  at::parallel_for(0, blocks.count(), 1, [&](int64_t begin, int64_t end) {
    BlockBackward<scalar_t> token(data, out);
    for (int64_t block = begin; block < end; ++block) {
      acc_t* partial = partials.get() + block * all;
      std::fill_n(partial, all, acc_t(0));
      for (int64_t i = blocks.begin(block); i < blocks.end(block); ++i) {
        token.run(i / data.T, i % data.T, weights ? partial : nullptr, norms ? partial + weights : nullptr,
                  output_norms ? partial + weights + norms : nullptr);
      }
    }
  });
  const auto finish = [&](void* result, int64_t offset, int64_t n) {
    sum_partials(static_cast<acc_t*>(result), partials.get() + offset, blocks.count(), all, n);
  };
  finish(out.weights, 0, weights);
  finish(out.norm_weights, weights, norms);
  finish(out.output_norm_weights, weights + norms, output_norms);
}

void depth_sum_backward(const DepthSumData& data, const DepthSumGradientData& out) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, data.dtype, "depth_weighted_sum_backward",
                                  [&] { sum_backward_kernel<scalar_t>(data, out); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_depth_weighted_sum_backward_stub, &depth_sum_backward)
#else
REGISTER_DISPATCH(satformer_depth_weighted_sum_backward_stub, &depth_sum_backward)
#endif
}  // namespace at::native
