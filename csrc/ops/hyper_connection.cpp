#include "csrc/ops/hyper_connection.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <string>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/hyper_connection_checks.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  const auto define = [&](const std::string& schema) { library.def(schema.c_str(), tags); };
  const std::string parameters =
      "Tensor streams, Tensor static_alpha, Tensor static_beta, Tensor? norm_weight, Tensor? norm_bias, "
      "Tensor? dynamic_alpha_proj, Tensor? dynamic_beta_proj, Tensor? dynamic_alpha_scale, "
      "Tensor? dynamic_beta_scale, float norm_eps, bool use_tanh";
  define("hyper_connection_read(" + parameters + ") -> (Tensor input, Tensor mixed, Tensor beta, Tensor kept)");
  define("hyper_connection_read_backward(Tensor grad_input, Tensor grad_mixed, Tensor grad_beta, " + parameters +
         ", Tensor kept) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  define("hyper_connection_write(Tensor mixed, Tensor beta, Tensor out) -> Tensor");
  define("hyper_connection_write_(Tensor(a!) mixed, Tensor beta, Tensor out) -> ()");
  define("hyper_connection_write_backward(Tensor grad, Tensor beta, Tensor out) -> (Tensor, Tensor)");
}

namespace satformer::ops {
namespace {

at::Tensor empty_of(const at::Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); }

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
HyperConnectionRead hyper_connection_read_meta(const HyperConnectionArguments& a) {
  check_hyper_connection_read("hyper_connection_read", a);
  return outputs_of_hyper_connection_read(a);
}

HyperConnectionGradients hyper_connection_read_backward_meta(const HyperConnectionReadGradients& grads,
                                                             const HyperConnectionArguments& a,
                                                             const at::Tensor& kept) {
  check_hyper_connection_read_backward("hyper_connection_read_backward", grads, a, kept);
  const HyperConnectionArguments to = map_tensors(a, empty_of);
  const auto or_undefined = [](const std::optional<at::Tensor>& x) { return x.value_or(at::Tensor()); };
  return {to.streams,
          to.static_alpha,
          to.static_beta,
          or_undefined(to.norm_weight),
          or_undefined(to.norm_bias),
          or_undefined(to.dynamic_alpha_proj),
          or_undefined(to.dynamic_beta_proj),
          or_undefined(to.dynamic_alpha_scale),
          or_undefined(to.dynamic_beta_scale)};
}

at::Tensor hyper_connection_write_meta(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_hyper_connection_write(mixed, beta, out, /*in_place=*/false);
  return empty_of(mixed);
}

void hyper_connection_write_in_place_meta(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_hyper_connection_write(mixed, beta, out, /*in_place=*/true);
}

std::tuple<at::Tensor, at::Tensor> hyper_connection_write_backward_meta(const at::Tensor& grad, const at::Tensor& beta,
                                                                        const at::Tensor& out) {
  check_hyper_connection_write_backward(grad, beta, out);
  return {empty_of(beta), empty_of(out)};
}

}  // namespace

HyperConnectionRead hyper_connection_read(const at::Tensor& streams, const HyperConnection& parameters) {
  static const Operator<decltype(hyper_connection_read)> op("satformer::hyper_connection_read");
  return op(streams, parameters);
}

at::Tensor hyper_connection_write(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  static const Operator<decltype(hyper_connection_write)> op("satformer::hyper_connection_write");
  return op(mixed, beta, out);
}

at::Tensor& hyper_connection_write_(at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  static const Operator<decltype(hyper_connection_write_in_place_meta)> op("satformer::hyper_connection_write_");
  op(mixed, beta, out);
  return mixed;
}

HyperConnectionGradients hyper_connection_read_backward(const HyperConnectionRead& grad, const at::Tensor& streams,
                                                        const HyperConnection& parameters, const at::Tensor& kept) {
  static const Operator<HyperConnectionGradients(const HyperConnectionReadGradients&, const at::Tensor&,
                                                 const HyperConnection&, const at::Tensor&)>
      op("satformer::hyper_connection_read_backward");
  return op({grad.input, grad.mixed, grad.beta}, streams, parameters, kept);
}

std::tuple<at::Tensor, at::Tensor> hyper_connection_write_backward(const at::Tensor& grad, const at::Tensor& beta,
                                                                   const at::Tensor& out) {
  static const Operator<decltype(hyper_connection_write_backward)> op("satformer::hyper_connection_write_backward");
  return op(grad, beta, out);
}

}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"hyper_connection_read", &hyper_connection_read_meta>(library);
  implement<"hyper_connection_read_backward", &hyper_connection_read_backward_meta>(library);
  implement<"hyper_connection_write", &hyper_connection_write_meta>(library);
  implement<"hyper_connection_write_", &hyper_connection_write_in_place_meta>(library);
  implement<"hyper_connection_write_backward", &hyper_connection_write_backward_meta>(library);
}
