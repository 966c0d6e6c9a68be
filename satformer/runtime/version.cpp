#include "satformer/runtime/version.h"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "satformer/runtime/device.h"

namespace satformer {

namespace {

std::string cuda_line() {
  const std::string built = SATFORMER_WITH_CUDA ? "CUDA " SATFORMER_CUDA_VERSION " kernels" : "no CUDA kernels";
  std::string reason;
  if (!load_cuda(&reason)) return fmt::format("{}; no GPU can be used: {}", built, reason);
  return fmt::format("{}; {} GPU{} can be used", built, num_gpus(), num_gpus() == 1 ? "" : "s");
}

std::string compiler() {
#ifdef __clang__
  return "compiled by " __VERSION__;  // begins with "Clang" or the distributor's name
#else
  return "compiled by GCC " __VERSION__;
#endif
}

}  // namespace

std::string version() { return SATFORMER_VERSION; }

std::string version_text() {
  return fmt::format("satformer {}\nLibTorch {}\n{}\n{}\nCPU capability {}\n", version(), TORCH_VERSION, cuda_line(),
                     compiler(), at::get_cpu_capability());
}

}  // namespace satformer
