// Continues token ids with an exported model, the likeliest token each time, and prints them:
//   generate MODEL.pt COUNT ID...
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "satformer/exchange/torchscript.h"

namespace {

void generate(const std::string& path, int count, const std::vector<std::int64_t>& prompt) {
  torch::jit::Module model = satformer::exchange::load_torchscript(path);
  const c10::InferenceMode inference;
  at::Tensor next = at::tensor(prompt).unsqueeze(0);  // first the whole prompt, then a token at a time
  c10::IValue caches = c10::List<at::Tensor>();       // then what the last step returned
  for (int i = 0; i < count; ++i) {
    const auto result = model.get_method("step")({next, caches}).toTuple();
    next = result->elements()[0].toTensor().select(1, -1).argmax(-1, /*keepdim=*/true);
    caches = result->elements()[1];
    std::printf("%lld\n", static_cast<long long>(next.item<std::int64_t>()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: generate MODEL.pt COUNT ID...\n");
    return 2;
  }
  try {
    std::vector<std::int64_t> prompt;
    for (int i = 3; i < argc; ++i) prompt.push_back(std::stoll(argv[i]));
    generate(argv[1], std::stoi(argv[2]), prompt);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
