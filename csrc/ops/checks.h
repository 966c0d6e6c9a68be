#pragma once
// Argument checks that several operators share. They use symbolic sizes so that the same code serves tracing; each
// throws a c10::Error that names operator, argument, what was expected and what came.
#include <ATen/core/Tensor.h>

#include <string_view>

#include "csrc/ops/gate.h"

namespace satformer::ops {

// The operator and one of its arguments, for messages.
struct Named {
  const char* op;
  const char* name;
  const at::Tensor& tensor;
};

// `shape`, for example "[B, T, H_kv, hd]", has four dimensions; float32, bfloat16, float16, or float64 off CUDA.
void check_values(const Named& values, const char* shape = "[B, T, H_kv, hd]");
void check_last_dimension(const Named& values);            // contiguous
void check_like(const Named& other, const Named& values);  // shape and dtype
void check_device(const Named& other, const Named& values);
void check_logits(const Named& logits, const Named& values);  // values' shape without hd; float32 or values' dtype
Gate check_gate(const char* op, std::string_view name);

}  // namespace satformer::ops
