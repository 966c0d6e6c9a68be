#pragma once
#include <string>

namespace satformer {

std::string version();  // "0.1.0"
// Several lines: satformer, LibTorch, CUDA (built for, and whether one can be used), compiler, CPU capability.
std::string version_text();

}  // namespace satformer
