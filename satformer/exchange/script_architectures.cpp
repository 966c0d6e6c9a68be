#include "satformer/exchange/script_architectures.h"

#include <array>

#include "satformer/core/error.h"
#include "satformer/exchange/script_parts.h"

namespace satformer::exchange {
namespace {

struct ScriptArchitecture {
  const char* name;
  void (*write)(ScriptNode& root, const models::ModelConfig& config);
};
constexpr std::array<ScriptArchitecture, 6> kArchitectures{{{"transformer", write_transformer},
                                                            {"satformer", write_satformer},
                                                            {"resformer", write_resformer},
                                                            {"denseformer", write_denseformer},
                                                            {"muddformer", write_muddformer},
                                                            {"hyperconnections", write_hyper_connections}}};

}  // namespace

void write_script(ScriptNode& root, const models::ModelConfig& config) {
  for (const ScriptArchitecture& architecture : kArchitectures) {
    if (config.architecture != architecture.name) continue;
    architecture.write(root, config);
    write_root(root, config);
    return;
  }
  fail("TorchScript: the architecture {} cannot be exported; add it to satformer/exchange/script_architectures.cpp",
       config.architecture);
}

}  // namespace satformer::exchange
