// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/cpu/depth_weighted_sum_kernel.h"
#include "csrc/ops/depth_weighted_sum_checks.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/row_arguments.h"

namespace at::native {
DEFINE_DISPATCH(satformer_depth_weighted_sum_stub);
DEFINE_DISPATCH(satformer_depth_weighted_sum_backward_stub);
DEFINE_DISPATCH(satformer_inverse_rms_stub);
DEFINE_DISPATCH(satformer_inverse_rms_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

ReadRows read_rows(const at::Tensor& x) { return {x.const_data_ptr(), x.stride(0), x.stride(1)}; }
WriteRows write_rows(const at::Tensor& x) { return {x.mutable_data_ptr(), x.stride(0), x.stride(1)}; }
void* data_or_null(const at::Tensor& x) { return x.defined() ? x.mutable_data_ptr() : nullptr; }

std::vector<const void*> pointers(const Tensors& list) {
  std::vector<const void*> result;
  for (const at::Tensor& x : list) result.push_back(x.const_data_ptr());
  return result;
}

// Raw pointers, and what they point into.
class Data {
 public:
  explicit Data(const DepthSum& a)
      : parameters_(a),
        norm_weights_(pointers(parameters_.norm_weights)),
        inverse_rms_(pointers(parameters_.inverse_rms)),
        output_norm_weights_(pointers(parameters_.output_norm_weights)) {
    for (const at::Tensor& x : a.sources) sources_.push_back(read_rows(x));
    const at::Tensor& first = a.sources[0];
    data_ = {first.size(0),
             first.size(1),
             first.size(2),
             static_cast<std::int64_t>(a.sources.size()),
             static_cast<std::int64_t>(ways(a)),
             values_dtype(a),
             sources_.data(),
             given(a.base) ? read_rows(*a.base) : ReadRows{},
             parameters_.weights.const_data_ptr(),
             has_weights_per_token(a),
             norm_weights_.empty() ? nullptr : norm_weights_.data(),
             inverse_rms_.empty() ? nullptr : inverse_rms_.data(),
             output_norm_weights_.empty() ? nullptr : output_norm_weights_.data(),
             a.output_norm_eps};
  }
  const DepthSumData& get() const { return data_; }

 private:
  DepthSumParameters parameters_;
  std::vector<const void*> norm_weights_, inverse_rms_, output_norm_weights_;
  std::vector<ReadRows> sources_;
  DepthSumData data_{};
};

Tensors depth_weighted_sum_cpu(const DepthSum& a) {
  check_depth_weighted_sum("depth_weighted_sum", a);
  Tensors out = outputs_of_depth_weighted_sum(a);
  std::vector<void*> rows;
  for (const at::Tensor& x : out) rows.push_back(x.mutable_data_ptr());
  at::native::satformer_depth_weighted_sum_stub(at::kCPU, Data(a).get(), rows.data());
  return out;
}

// grad_sources: the tensors that are added to, or empty.
DepthSumGradients backward(const char* op, at::TensorList grad_sources, at::TensorList grads, const DepthSum& a,
                           const DepthSumMask& mask) {
  check_depth_weighted_sum_backward(op, grads, a);
  const bool adds = !grad_sources.empty();
  const DepthSumMask wanted = wanted_gradients(mask, a);
  const DepthSumBackwardOutputs out(a, wanted, /*with_sources=*/!adds);
  Tensors contiguous_grads;
  std::vector<ReadRows> grad_rows;
  for (const at::Tensor& grad : grads) {
    contiguous_grads.push_back(contiguous_rows(grad));
    grad_rows.push_back(read_rows(contiguous_grads.back()));
  }
  std::vector<WriteRows> source_rows;
  if (wanted[0]) {
    for (const at::Tensor& x : adds ? grad_sources : at::TensorList(out.sources)) source_rows.push_back(write_rows(x));
  }
  const DepthSumGradientData gradients{grad_rows.data(),
                                       source_rows.empty() ? nullptr : source_rows.data(),
                                       adds,
                                       data_or_null(out.weights),
                                       data_or_null(out.base),
                                       data_or_null(out.norm_weights),
                                       data_or_null(out.inverse_rms),
                                       data_or_null(out.output_norm_weights)};
  at::native::satformer_depth_weighted_sum_backward_stub(at::kCPU, Data(a).get(), gradients);
  return out.gradients(a);
}

DepthSumGradients depth_weighted_sum_backward_cpu(at::TensorList grads, const DepthSum& a, DepthSumMask mask) {
  return backward("depth_weighted_sum_backward", {}, grads, a, mask);
}

DepthSumGradients depth_weighted_sum_backward_add_cpu(at::TensorList grad_sources, at::TensorList grads,
                                                      const DepthSum& a, DepthSumMask mask) {
  const char* op = "depth_weighted_sum_backward_";
  check_depth_weighted_sum_backward(op, grads, a);
  check_grad_sources(op, grad_sources, grads, a);
  return backward(op, grad_sources, grads, a, mask);
}

// x as [rows, d].
at::Tensor as_matrix(const at::Tensor& x, std::int64_t rows) { return contiguous_rows(x.reshape({rows, x.size(-1)})); }

at::Tensor inverse_rms_cpu(const at::Tensor& x, double eps) {
  check_inverse_rms(x, eps);
  at::Tensor out = at::empty(x.sizes().slice(0, x.dim() - 1), x.options().dtype(accumulate_dtype(x)));
  at::native::satformer_inverse_rms_stub(at::kCPU, out, as_matrix(x, out.numel()), eps);
  return out;
}

at::Tensor inverse_rms_backward_cpu(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  check_inverse_rms_backward(grad, x, inverse);
  at::Tensor out = at::empty(x.sizes(), x.options());
  at::native::satformer_inverse_rms_backward_stub(at::kCPU, out, grad.contiguous(), as_matrix(x, grad.numel()),
                                                  inverse.contiguous());
  return out;
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"depth_weighted_sum", &depth_weighted_sum_cpu>(library);
  implement<"depth_weighted_sum_backward", &depth_weighted_sum_backward_cpu>(library);
  implement<"depth_weighted_sum_backward_", &depth_weighted_sum_backward_add_cpu>(library);
  implement<"inverse_rms", &inverse_rms_cpu>(library);
  implement<"inverse_rms_backward", &inverse_rms_backward_cpu>(library);
}
