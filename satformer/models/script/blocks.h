#pragma once
// Layers that are pre-norm blocks on one residual stream, as TorchScript.
#include <functional>
#include <string>

#include "satformer/models/model_config.h"
#include "satformer/models/script/node.h"

namespace satformer::models {

// Gives every layer of the trunk its class and methods.
void write_blocks(ScriptNode& trunk, const ModelConfig& config);

// x = block(x): the lines of all layers in their order, with what they pass on; for write_trunk's body.
std::string block_lines(const ModelConfig& config);

// Calls `write` with the node value_residual_mixing of each layer that mixes.
void for_each_mixer(ScriptNode& trunk, const ModelConfig& config, const std::function<void(ScriptNode&)>& write);

}  // namespace satformer::models
