#pragma once
// The one list of architectures that can be written as TorchScript: a new one is a file and a line in
// script_architectures.cpp.
#include "satformer/exchange/script_node.h"
#include "satformer/models/model_config.h"

namespace satformer::exchange {

// Gives every node of a model's parameters (root: as in the checkpoint, "model.layers.0...") its class and methods.
// Error when the architecture is not in the list.
void write_script(ScriptNode& root, const models::ModelConfig& config);

void write_transformer(ScriptNode& root, const models::ModelConfig& config);
void write_satformer(ScriptNode& root, const models::ModelConfig& config);
void write_resformer(ScriptNode& root, const models::ModelConfig& config);
void write_denseformer(ScriptNode& root, const models::ModelConfig& config);
void write_muddformer(ScriptNode& root, const models::ModelConfig& config);
void write_hyper_connections(ScriptNode& root, const models::ModelConfig& config);

}  // namespace satformer::exchange
