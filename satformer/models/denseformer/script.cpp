#include <fmt/format.h>

#include "satformer/models/architecture_list.h"
#include "satformer/models/script/blocks.h"
#include "satformer/models/script/parts.h"

namespace satformer::models {
void write_denseformer_script(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  write_blocks(trunk, config);
  // x0 the embedding, x1, x2, ... the blocks' outputs; x what the next block reads.
  std::string lines = "    x0 = x\n";
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::int64_t newest = layer + 1;
    lines += fmt::format("    x{} = {}.forward(x, sequence)\n", newest, item("self.layers", layer));
    if (newest % config.dwa_period != 0) {
      lines += fmt::format("    x = x{}\n", newest);
      continue;
    }
    std::string sources;  // oldest first, like the weights
    for (std::int64_t j = newest % config.dwa_dilation; j <= newest; j += config.dwa_dilation) {
      sources += fmt::format("{}x{}", sources.empty() ? "" : ", ", j);
    }
    lines += fmt::format("    x = ops.satformer.depth_weighted_sum([{}], {}.weight, None, [], [], [], 1e-06)[0]\n",
                         sources, item("self.dwa_modules.alphas", layer));
  }
  write_trunk(trunk, config, lines);
}

}  // namespace satformer::models
