#pragma once
// The gate functions of the selective value mix: alpha = gate(logits), elementwise or over a token's KV heads.
// Free of torch headers and all in the header: CUDA kernels and configurations, which know no tensors, read it too.
// check_gate() and gate_from_name() of csrc/ops/checks.h throw where a name is wrong.
#include <array>
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

struct NamedGate {
  Gate gate;
  std::string_view name;
};
// The names of the config key `value_residual_gate` and of the operators' argument `gate`.
inline constexpr std::array<NamedGate, 6> kNamedGates{{{Gate::kRelu, "relu"},
                                                       {Gate::kSigmoid, "sigmoid"},
                                                       {Gate::kSoftmax, "softmax"},
                                                       {Gate::kSoftmaxSigmoid, "softmax_sigmoid"},
                                                       {Gate::kTanh, "tanh"},
                                                       {Gate::kIdentity, "identity"}}};

// Empty for a number that is no Gate.
constexpr std::string_view gate_name(Gate gate) {
  for (const NamedGate& entry : kNamedGates) {
    if (entry.gate == gate) return entry.name;
  }
  return {};
}

constexpr std::optional<Gate> find_gate(std::string_view name) {
  for (const NamedGate& entry : kNamedGates) {
    if (entry.name == name) return entry.gate;
  }
  return std::nullopt;
}

// "relu, sigmoid, softmax, softmax_sigmoid, tanh, identity"
inline std::string gate_names() {
  std::string names;
  for (const NamedGate& entry : kNamedGates) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

}  // namespace satformer::ops
