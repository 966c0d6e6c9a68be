#include "satformer/models/architecture_list.h"
#include "satformer/models/script/blocks.h"
#include "satformer/models/script/parts.h"

namespace satformer::models {

void write_toy_script(ScriptNode& root, const ModelConfig& config) {
  write_satformer_script(root, config);
  write_trunk(root.child("model"), config, "    x = self.embedding_scale * x\n" + block_lines(config));
}

}  // namespace satformer::models
