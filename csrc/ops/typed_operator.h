#pragma once
// For csrc alone: the public functions are thin calls of registered operators, with the operator's own signature.
#include <ATen/core/dispatch/Dispatcher.h>

namespace satformer::ops {

// typed_operator<decltype(swiglu)>("satformer::swiglu"): looked up once, where it is kept in a function's static.
template <typename Signature>
c10::TypedOperatorHandle<Signature> typed_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace satformer::ops
