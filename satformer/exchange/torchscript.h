#pragma once
// A model as a TorchScript file: C++ and Python run it with LibTorch and the operator library alone.
//
//   forward(ids) -> logits [B, T, V]         ids int64 [B, T], any B and T
//   step(ids, caches) -> (logits, caches)    the next T tokens of each row. caches: [] at the start, then what the last
//                                            step returned: keys and values [B, past, H_kv, hd] of each layer in turn.
//                                            SATFormer's and ResFormer's cached values are the mixed ones, v'.
//   gates(ids) -> [L, B, T, H_kv]            what each layer's v1 is multiplied with, intervention included; 0 in
//   layers
//                                            without a gate (those with one: the attribute gate_layers)
//   set_gate_intervention(scale, shift)      gate' = scale * gate + shift from now on; both broadcast to [L, H_kv].
//                                            1 and 0 at the start.
//
// ResFormer's gate is its lambda1, the same for every token. Where no layer mixes first values, gates and
// set_gate_intervention are errors. The parameters have the checkpoint's names and ask for no gradient.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "satformer/models/language_model.h"

namespace torch::jit {
struct Module;
}

namespace satformer::exchange {

// Names and contents of what a file holds besides the model ("config.json"): torch.jit.load's _extra_files.
using ExtraFiles = std::unordered_map<std::string, std::string>;

// The model as a module, whose parameters are the model's, not copies. Error when its architecture has no TorchScript.
torch::jit::Module make_torchscript(const models::LanguageModel& model);

// max |a - b| / max |a| of the logits of the model, a, and of the module, b, for the same ids.
double torchscript_difference(models::LanguageModel& model, torch::jit::Module& module, const at::Tensor& ids);

// Whole or not at all.
void save_torchscript(const torch::jit::Module& module, const std::filesystem::path& path,
                      const ExtraFiles& extra_files = {});

// torch::jit::load with the operators there, the CUDA half too where the device asks for it, and one-line errors: a
// file that is no TorchScript, and one that calls an operator nobody registered ("Unknown builtin op" in LibTorch).
// The names in `extra_files` are read from the file; those that it lacks are left empty.
torch::jit::Module load_torchscript(const std::filesystem::path& path, c10::Device device = c10::Device(c10::kCPU),
                                    ExtraFiles* extra_files = nullptr);

struct TorchScriptExport {
  std::vector<std::string> methods;
  double difference = 0;  // torchscript_difference for random ids
};

// make, compare, save. Error, and no file, when the logits differ by more than 1e-5: rounding alone stays below 1e-6.
TorchScriptExport export_torchscript(models::LanguageModel& model, const std::filesystem::path& path,
                                     const ExtraFiles& extra_files = {});

}  // namespace satformer::exchange
