#pragma once
// The gate functions of the selective value mix: alpha = gate(logits), elementwise or over a token's KV heads.
// Free of torch headers: the CUDA kernels read it too.
#include <optional>
#include <string>
#include <string_view>

namespace satformer::ops {

enum class Gate {
  kRelu,            // max(x, 0)
  kSigmoid,         // 1 / (1 + exp(-x))
  kSoftmax,         // softmax over heads * H_kv: mean 1
  kSoftmaxSigmoid,  // softmax over heads * sigmoid * H_kv
  kTanh,
  kIdentity,
};

// The names of the config key `value_residual_gate` and of the operators' argument `gate`.
std::string_view gate_name(Gate gate);
std::optional<Gate> find_gate(std::string_view name);
// As find_gate, but a c10::Error that lists the valid names when there is no such gate.
Gate gate_from_name(std::string_view name);
// "relu, sigmoid, softmax, softmax_sigmoid, tanh, identity"
std::string gate_names();

}  // namespace satformer::ops
