#pragma once
// Argument checks that the operators share. They use symbolic sizes so that the same code serves every dispatch key and
// tracing; each throws a c10::Error that names operator, argument, what was expected and what it got.
#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "csrc/ops/gate.h"

namespace satformer::ops {

// An operator's argument, for messages.
struct Argument {
  const char* op;
  std::string name;
  const at::Tensor& tensor;
};

// --- shape; `shape` as the message writes it, for instance "[B, T, d]" ---
void check_dimensions(const Argument& x, int64_t dims, const char* shape);
void check_dims_at_least(const Argument& x, int64_t dims, const char* shape);
// Exactly these sizes; `why` continues the sentence, for instance " like x".
void check_sizes(const Argument& x, c10::SymIntArrayRef expected, const char* why = "");
void check_last_dimension(const Argument& x);  // contiguous

// --- dtype ---
// What the kernels compute on: float32, bfloat16, float16; float64 on CPU alone.
void check_values_dtype(const Argument& x);
void check_values_dtype(const char* op, const std::string& name, at::ScalarType dtype, at::Device device);
void check_floating(const Argument& x);  // also float64 on CUDA
void check_dtype(const Argument& x, at::ScalarType expected);
void check_same_dtype(const Argument& x, const Argument& like);

void check_device(const Argument& x, const Argument& like);
void check_like(const Argument& x, const Argument& like);  // sizes and dtype
// A parameter: of these sizes, any floating dtype, on the device of `like`.
void check_parameter(const Argument& x, c10::SymIntArrayRef expected, const Argument& like);

// --- heads ---
// Four dimensions and a dtype of values.
void check_values(const Argument& values, const char* shape = "[B, T, H_kv, hd]");
void check_logits(const Argument& logits,
                  const Argument& values);  // values' shape without hd; float32 or values' dtype

// --- gates ---
Gate check_gate(const char* op, std::string_view name);
// The same for names that are no operator's argument.
Gate gate_from_name(std::string_view name);

}  // namespace satformer::ops
