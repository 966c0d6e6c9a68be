#include "csrc/ops/gate.h"

#include <c10/util/Exception.h>

#include <array>

namespace satformer::ops {
namespace {

struct NamedGate {
  Gate gate;
  std::string_view name;
};
constexpr std::array<NamedGate, 6> kGates{{{Gate::kRelu, "relu"},
                                           {Gate::kSigmoid, "sigmoid"},
                                           {Gate::kSoftmax, "softmax"},
                                           {Gate::kSoftmaxSigmoid, "softmax_sigmoid"},
                                           {Gate::kTanh, "tanh"},
                                           {Gate::kIdentity, "identity"}}};

}  // namespace

std::string_view gate_name(Gate gate) {
  for (const NamedGate& entry : kGates) {
    if (entry.gate == gate) return entry.name;
  }
  TORCH_CHECK(false, "gate ", static_cast<int>(gate), " is not one of ", gate_names());
}

std::optional<Gate> find_gate(std::string_view name) {
  for (const NamedGate& entry : kGates) {
    if (entry.name == name) return entry.gate;
  }
  return std::nullopt;
}

Gate gate_from_name(std::string_view name) {
  const std::optional<Gate> gate = find_gate(name);
  TORCH_CHECK_VALUE(gate.has_value(), "gate must be one of ", gate_names(), ", got \"", name, "\"");
  return *gate;
}

std::string gate_names() {
  std::string names;
  for (const NamedGate& entry : kGates) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

}  // namespace satformer::ops
