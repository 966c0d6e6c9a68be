#include "satformer/models/architecture_list.h"
#include "satformer/models/script/blocks.h"
#include "satformer/models/script/parts.h"

namespace satformer::models {
void write_transformer_script(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  write_blocks(trunk, config);
  write_trunk(trunk, config, block_lines(config));
}

}  // namespace satformer::models
