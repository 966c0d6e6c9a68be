// Loads an exported model in a program that knows LibTorch alone, and prints the shape of its logits:
//   plain_libtorch MODEL.pt LIBSATFORMER_OPS.so
// Without the second argument it fails as any such program does: "Unknown builtin op: satformer::...".
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstdio>
#include <exception>

namespace {

void print_logits_shape(const char* path) {
  torch::jit::Module model = torch::jit::load(path);
  const c10::InferenceMode inference;
  const at::Tensor logits = model.forward({at::zeros({2, 5}, at::kLong)}).toTensor();
  std::printf("[%lld, %lld, %lld]\n", static_cast<long long>(logits.size(0)), static_cast<long long>(logits.size(1)),
              static_cast<long long>(logits.size(2)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: plain_libtorch MODEL.pt [LIBSATFORMER_OPS.so]\n");
    return 2;
  }
  // Its static initialisers register the operators. It stays loaded: registrations cannot be taken back.
  if (argc > 2 && dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  try {
    print_logits_shape(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
