// CPU kernels of qk_norm_rope_mix, compiled once for each CPU capability (see cpu/gate_row.h on what may stand here).
// A token is the unit of work. The sums over tokens are taken block by block, blocks of a size that does not depend on
// the number of threads, and the blocks' sums are added in their order.
#include "csrc/cpu/qk_norm_rope_mix_kernel.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "csrc/cpu/qk_norm_rope_mix_pass.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // the rows' functions; nothing of at::native but the registration is used here

template <typename scalar_t, typename acc_t>
void forward_head(scalar_t* out, const scalar_t* input, const acc_t* weight, acc_t eps, const Rotation<acc_t>& rotation,
                  acc_t* scratch) {
  const int64_t hd = 2 * rotation.half;
  const acc_t* x = widened(input, scratch, hd);
  acc_t* y = unfinished(out, scratch);
  if (weight) {
    norm_rotate_row(y, x, weight, eps, rotation);
  } else {
    rotate_row(y, x, rotation);
  }
  finish(out, y, hd);
}

// The values of a token. gate_memory: 4 H_kv numbers.
template <typename scalar_t, typename acc_t>
void forward_values(const Pass<scalar_t>& pass, const Values<scalar_t*>& out, const Values<const scalar_t*>& v,
                    int64_t b, int64_t t, acc_t* gate_memory) {
  switch (pass.mix) {
    case ValueMix::kNone:
      for (int64_t h = 0; h < pass.H_kv; ++h) {
        std::memcpy(out.row(b, t, h), v.row(b, t, h), pass.hd * sizeof(scalar_t));
      }
      return;
    case ValueMix::kSelective: {
      const GateRow<acc_t> gates = pass.gates(b, t, gate_memory);
      for (int64_t h = 0; h < pass.H_kv; ++h) {
        mix_row(out.row(b, t, h), v.row(b, t, h), pass.first.row(b, t, h), gates.alpha[h], pass.hd);
      }
      return;
    }
    case ValueMix::kStatic:
      for (int64_t h = 0; h < pass.H_kv; ++h) {
        combine_row(out.row(b, t, h), v.row(b, t, h), pass.first.row(b, t, h), pass.lambda1, pass.lambda2, pass.hd);
      }
      return;
  }
}

template <typename scalar_t>
void forward(const MixInputs& in, const MixOutputs& out) {
  using acc_t = at::opmath_type<scalar_t>;
  const Pass<scalar_t> pass(in, in.q, in.k);
  const auto q = reading<scalar_t>(in.q), k = reading<scalar_t>(in.k), v = reading<scalar_t>(in.v);
  const auto to_q = writing<scalar_t>(out.q), to_k = writing<scalar_t>(out.k);
  const auto to_v = writing_or_null<scalar_t>(out.v);
  at::parallel_for(0, pass.B * pass.T, pass.tokens_a_block(), [&](int64_t begin, int64_t end) {
    const Scratch<acc_t> memory(pass.hd + 4 * pass.H_kv);
    acc_t *scratch = memory.get(), *gate_memory = scratch + pass.hd;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / pass.T, t = i % pass.T;
      const Rotation<acc_t> rotation = pass.rotation(b, t);
      for (int64_t h = 0; h < pass.H; ++h) {
        forward_head(to_q.row(b, t, h), q.row(b, t, h), pass.q_weight, pass.eps, rotation, scratch);
      }
      for (int64_t h = 0; h < pass.H_kv; ++h) {
        forward_head(to_k.row(b, t, h), k.row(b, t, h), pass.k_weight, pass.eps, rotation, scratch);
      }
      if (to_v.data) forward_values(pass, to_v, v, b, t, gate_memory);
    }
  });
}

// A block's sums over its tokens.
template <typename acc_t>
struct Sums {
  acc_t *q_weight, *k_weight, *lambda1, *lambda2;
  Sums(acc_t* memory, int64_t hd)
      : q_weight(memory), k_weight(memory + hd), lambda1(memory + 2 * hd), lambda2(memory + 2 * hd + 1) {}
  static int64_t size(int64_t hd) { return 2 * hd + 2; }
};

template <typename scalar_t>
class Backward {
 public:
  using acc_t = at::opmath_type<scalar_t>;
  Backward(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets, const MixGradients& out)
      : pass_(in, grads.q, grads.k),
        q_(reading_or_null<scalar_t>(in.q)),
        k_(reading_or_null<scalar_t>(in.k)),
        v_(reading_or_null<scalar_t>(in.v)),
        grad_q_(reading<scalar_t>(grads.q)),
        grad_k_(reading<scalar_t>(grads.k)),
        grad_v_(reading_or_null<scalar_t>(grads.v)),
        to_q_(writing<scalar_t>(targets.q)),
        to_k_(writing<scalar_t>(targets.k)),
        to_v_(writing_or_null<scalar_t>(targets.v)),
        to_first_(writing_or_null<scalar_t>(out.first_values)),
        logits_target_(targets.logits),
        out_(out) {
    const Tensor& sum = targets.first_values;
    if (!sum.defined()) return;
    if (sum.scalar_type() == grads.q.scalar_type()) {
      add_to_first_ = writing<scalar_t>(sum);
    } else {
      add_to_wide_first_ = writing<acc_t>(sum);
    }
  }

  void run() {
    const int64_t tokens = pass_.B * pass_.T, block_tokens = pass_.tokens_a_block();
    const int64_t blocks = (tokens + block_tokens - 1) / block_tokens, sums_size = Sums<acc_t>::size(pass_.hd);
    const Scratch<acc_t> sums(blocks * sums_size);
    at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      const Scratch<acc_t> scratch(2 * pass_.hd + 5 * pass_.H_kv);
      for (int64_t block = begin; block < end; ++block) {
        acc_t* block_sums = sums.get() + block * sums_size;
        std::fill(block_sums, block_sums + sums_size, acc_t(0));
        const int64_t first = block * block_tokens, last = std::min(tokens, first + block_tokens);
        for (int64_t i = first; i < last; ++i) {
          token(i / pass_.T, i % pass_.T, Sums<acc_t>(block_sums, pass_.hd), scratch.get());
        }
      }
    });
    const int64_t hd = pass_.hd;
    add_blocks(writable_or_null<acc_t>(out_.q_weight), sums.get(), hd, blocks);
    add_blocks(writable_or_null<acc_t>(out_.k_weight), sums.get() + hd, hd, blocks);
    add_blocks(writable_or_null<acc_t>(out_.lambda1), sums.get() + 2 * hd, 1, blocks);
    add_blocks(writable_or_null<acc_t>(out_.lambda2), sums.get() + 2 * hd + 1, 1, blocks);
  }

 private:
  void token(int64_t b, int64_t t, const Sums<acc_t>& sums, acc_t* scratch) const {
    const Rotation<acc_t> rotation = pass_.rotation(b, t);
    for (int64_t h = 0; h < pass_.H; ++h) {
      head(to_q_.row(b, t, h), sums.q_weight, grad_q_.row(b, t, h), q_.row(b, t, h), pass_.q_weight, rotation, scratch);
    }
    for (int64_t h = 0; h < pass_.H_kv; ++h) {
      head(to_k_.row(b, t, h), sums.k_weight, grad_k_.row(b, t, h), k_.row(b, t, h), pass_.k_weight, rotation, scratch);
    }
    if (!grad_v_.data) return;
    acc_t *wide = scratch, *gate_memory = scratch + pass_.hd;
    switch (pass_.mix) {
      case ValueMix::kNone:
        for (int64_t h = 0; h < pass_.H_kv; ++h) copy_value(b, t, h);
        return;
      case ValueMix::kSelective:
        return selective_values(b, t, wide, gate_memory);
      case ValueMix::kStatic:
        return static_values(b, t, sums, wide);
    }
  }

  // From the gradient of a head of q' or k' to that of q or k. scratch: 2 hd numbers.
  void head(scalar_t* out, acc_t* dweight, const scalar_t* grad, const scalar_t* input, const acc_t* weight,
            const Rotation<acc_t>& rotation, acc_t* scratch) const {
    const acc_t* g = widened(grad, scratch, pass_.hd);
    if (!weight) {
      acc_t* dx = unfinished(out, scratch);
      rotate_back_row(dx, g, rotation);
      return finish(out, dx, pass_.hd);
    }
    const acc_t* x = widened(input, scratch + pass_.hd, pass_.hd);
    acc_t* dx = unfinished(out, scratch + pass_.hd);
    norm_rotate_backward_row(dx, dweight, g, x, weight, pass_.eps, rotation, scratch);
    finish(out, dx, pass_.hd);
  }

  void copy_value(int64_t b, int64_t t, int64_t h) const {
    std::memcpy(to_v_.row(b, t, h), grad_v_.row(b, t, h), pass_.hd * sizeof(scalar_t));
  }

  void selective_values(int64_t b, int64_t t, acc_t* wide, acc_t* gate_memory) const {
    const GateRow<acc_t> gates = pass_.gates(b, t, gate_memory);
    acc_t* to_alpha = gate_memory + 4 * pass_.H_kv;
    for (int64_t h = 0; h < pass_.H_kv; ++h) {
      const scalar_t* g = grad_v_.row(b, t, h);
      copy_value(b, t, h);
      first_gradient(b, t, h, g, gates.alpha[h], wide);
      to_alpha[h] = gates.closed(pass_.gate, h) ? acc_t(0) : dot_row<acc_t>(g, pass_.first.row(b, t, h), pass_.hd);
    }
    gates.backward(pass_.gate, to_alpha);
    write_row(logits_target_.mutable_data_ptr(), logits_target_.scalar_type(),
              b * logits_target_.stride(0) + t * logits_target_.stride(1), to_alpha, pass_.H_kv,
              logits_target_.stride(2));
  }

  void static_values(int64_t b, int64_t t, const Sums<acc_t>& sums, acc_t* wide) const {
    for (int64_t h = 0; h < pass_.H_kv; ++h) {
      const scalar_t* g = grad_v_.row(b, t, h);
      scale_row(to_v_.row(b, t, h), g, pass_.lambda2, pass_.hd);
      first_gradient(b, t, h, g, pass_.lambda1, wide);
      if (out_.lambda1.defined()) *sums.lambda1 += dot_row<acc_t>(g, pass_.first.row(b, t, h), pass_.hd);
      if (out_.lambda2.defined()) *sums.lambda2 += dot_row<acc_t>(g, v_.row(b, t, h), pass_.hd);
    }
  }

  // alpha g, written or added where the gradient of first_values goes.
  void first_gradient(int64_t b, int64_t t, int64_t h, const scalar_t* g, acc_t alpha, acc_t* wide) const {
    if (to_first_.data) scale_row(to_first_.row(b, t, h), g, alpha, pass_.hd);
    if (add_to_first_.data) add_scaled_row(add_to_first_.row(b, t, h), g, alpha, pass_.hd);
    if (add_to_wide_first_.data && alpha != acc_t(0)) {
      add_scaled_row(add_to_wide_first_.row(b, t, h), widened(g, wide, pass_.hd), alpha, pass_.hd);
    }
  }

  // out = the blocks' sums of n numbers each, added in order.
  void add_blocks(acc_t* out, const acc_t* sums, int64_t n, int64_t blocks) const {
    if (!out) return;
    for (int64_t i = 0; i < n; ++i) {
      double total = 0;
      for (int64_t block = 0; block < blocks; ++block) total += sums[block * Sums<acc_t>::size(pass_.hd) + i];
      out[i] = static_cast<acc_t>(total);
    }
  }

  Pass<scalar_t> pass_;
  Values<const scalar_t*> q_, k_, v_, grad_q_, grad_k_, grad_v_;
  Values<scalar_t*> to_q_, to_k_, to_v_, to_first_;
  Values<scalar_t*> add_to_first_{};
  Values<acc_t*> add_to_wide_first_{};
  const Tensor& logits_target_;
  const MixGradients& out_;
};

void forward_kernel(const MixInputs& in, const MixOutputs& out) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, in.q.scalar_type(), "qk_norm_rope_mix",
                                  [&] { forward<scalar_t>(in, out); });
}

void backward_kernel(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets,
                     const MixGradients& out) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, grads.q.scalar_type(), "qk_norm_rope_mix_backward",
                                  [&] { Backward<scalar_t>(in, grads, targets, out).run(); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_qk_norm_rope_mix_stub, &forward_kernel)
ALSO_REGISTER_AVX512_DISPATCH(satformer_qk_norm_rope_mix_backward_stub, &backward_kernel)
#else
REGISTER_DISPATCH(satformer_qk_norm_rope_mix_stub, &forward_kernel)
REGISTER_DISPATCH(satformer_qk_norm_rope_mix_backward_stub, &backward_kernel)
#endif
}  // namespace at::native
