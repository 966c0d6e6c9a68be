#pragma once
// The gate functions of the operator gated_value_mix, for readers of configurations.
#include "csrc/ops/gate.h"

namespace satformer::nn {

using ops::find_gate;
using ops::Gate;
using ops::gate_name;
using ops::gate_names;

}  // namespace satformer::nn
