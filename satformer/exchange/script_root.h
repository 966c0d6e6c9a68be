#pragma once
// A model's tree of parameters becomes its TorchScript text: each node gets its class and methods.
#include "satformer/models/model_config.h"
#include "satformer/models/script/node.h"

namespace satformer::exchange {

// root: as in the checkpoint, "model.layers.0...". The architecture writes what is below `model` (its script.cpp), the
// rest are the public methods (exchange/torchscript.h). Error when the architecture is not known.
void write_script(models::ScriptNode& root, const models::ModelConfig& config);

}  // namespace satformer::exchange
