#include "csrc/ops/hyper_connection.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <string>

#include "csrc/ops/hyper_connection_calls.h"

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

template <typename Signature>
c10::TypedOperatorHandle<Signature> find_hyper(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

const c10::TypedOperatorHandle<ReadSignature>& hyper_read_operator() {
  static const auto handle = find_hyper<ReadSignature>("satformer::hyper_connection_read");
  return handle;
}
const c10::TypedOperatorHandle<ReadBackwardSignature>& hyper_read_backward_operator() {
  static const auto handle = find_hyper<ReadBackwardSignature>("satformer::hyper_connection_read_backward");
  return handle;
}
const c10::TypedOperatorHandle<WriteSignature>& hyper_write_operator() {
  static const auto handle = find_hyper<WriteSignature>("satformer::hyper_connection_write");
  return handle;
}
const c10::TypedOperatorHandle<WriteInPlaceSignature>& hyper_write_in_place_operator() {
  static const auto handle = find_hyper<WriteInPlaceSignature>("satformer::hyper_connection_write_");
  return handle;
}
const c10::TypedOperatorHandle<WriteBackwardSignature>& hyper_write_backward_operator() {
  static const auto handle = find_hyper<WriteBackwardSignature>("satformer::hyper_connection_write_backward");
  return handle;
}

HyperConnectionRead hyper_connection_read(const at::Tensor& streams, const HyperConnection& p) {
  auto [input, mixed, beta, kept] = hyper_read_operator().call(
      streams, p.static_alpha, p.static_beta, p.norm_weight, p.norm_bias, p.dynamic_alpha_proj, p.dynamic_beta_proj,
      p.dynamic_alpha_scale, p.dynamic_beta_scale, p.norm_eps, p.use_tanh);
  return {std::move(input), std::move(mixed), std::move(beta), std::move(kept)};
}

at::Tensor hyper_connection_write(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  return hyper_write_operator().call(mixed, beta, out);
}

at::Tensor& hyper_connection_write_(at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  hyper_write_in_place_operator().call(mixed, beta, out);
  return mixed;
}

HyperConnectionGradients hyper_connection_read_backward(const HyperConnectionRead& grad, const at::Tensor& streams,
                                                        const HyperConnection& p, const at::Tensor& kept) {
  auto [to_streams, to_alpha, to_beta, to_norm_weight, to_norm_bias, to_alpha_proj, to_beta_proj, to_alpha_scale,
        to_beta_scale] =
      hyper_read_backward_operator().call(grad.input, grad.mixed, grad.beta, streams, p.static_alpha, p.static_beta,
                                          p.norm_weight, p.norm_bias, p.dynamic_alpha_proj, p.dynamic_beta_proj,
                                          p.dynamic_alpha_scale, p.dynamic_beta_scale, p.norm_eps, p.use_tanh, kept);
  return {std::move(to_streams),     std::move(to_alpha),       std::move(to_beta),
          std::move(to_norm_weight), std::move(to_norm_bias),   std::move(to_alpha_proj),
          std::move(to_beta_proj),   std::move(to_alpha_scale), std::move(to_beta_scale)};
}

std::tuple<at::Tensor, at::Tensor> hyper_connection_write_backward(const at::Tensor& grad, const at::Tensor& beta,
                                                                   const at::Tensor& out) {
  return hyper_write_backward_operator().call(grad, beta, out);
}

}  // namespace satformer::ops
