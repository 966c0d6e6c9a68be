#include "satformer/exchange/torchscript.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/max.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstddef>
#include <exception>

#include "satformer/core/error.h"
#include "satformer/core/first_line.h"
#include "satformer/exchange/script_compiler.h"
#include "satformer/exchange/script_root.h"
#include "satformer/io/atomic_file.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/version.h"

namespace satformer::exchange {
namespace {

// The parameters as a tree of modules: "model.norm.weight" is parameter weight of node norm of node model.
models::ScriptNode parameter_tree(const models::LanguageModel& model) {
  models::ScriptNode root;
  for (const auto& item : model.named_parameters()) {
    const std::string& name = item.key();
    const std::size_t dot = name.rfind('.');
    models::ScriptNode& node = dot == std::string::npos ? root : root.child(std::string_view(name).substr(0, dot));
    node.parameters.emplace_back(dot == std::string::npos ? name : name.substr(dot + 1), item.value().detach());
  }
  return root;
}

// Two rows of ids that touch all parts of the vocabulary, the same at each export.
at::Tensor sample_ids(const models::ModelConfig& config) {
  constexpr std::int64_t kRows = 2, kLength = 16;
  const at::Tensor numbers = at::arange(kRows * kLength, at::kLong);
  return (numbers * numbers * 7919 + 31 * numbers).remainder(config.vocab_size).view({kRows, kLength});
}

// The operator that LibTorch's message says is unknown; empty when it says something else.
std::string unknown_operator(const std::string& message) {
  constexpr std::string_view kBefore = "Unknown builtin op: ";
  const std::size_t start = message.find(kBefore);
  if (start == std::string::npos) return "";
  const std::size_t name = start + kBefore.size();
  std::string found = message.substr(name, message.find_first_of(" \n", name) - name);
  if (found.ends_with('.')) found.pop_back();
  return found;
}

[[noreturn]] void fail_to_load(const std::filesystem::path& path, const std::string& message) {
  const std::string name = unknown_operator(message);
  require(name.empty(),
          "{}: calls the operator {}, which no library in this process registers (satformer {}); load the "
          "libsatformer_ops.so of the satformer that wrote the file",
          path.string(), name, version());
  const std::size_t start = message.find_first_not_of('\n');
  const std::string text = start == std::string::npos ? message : message.substr(start);
  fail("{}: not a TorchScript file that can be read: {}", path.string(), first_line(text));
}

}  // namespace

torch::jit::Module make_torchscript(const models::LanguageModel& model) {
  models::ScriptNode root = parameter_tree(model);
  write_script(root, model.config());
  return compile(root);
}

double torchscript_difference(models::LanguageModel& model, torch::jit::Module& module, const at::Tensor& ids) {
  const at::NoGradGuard no_grad;
  const at::Tensor expected =
      model.logits(model.hidden_states({.input_ids = ids, .positions = {}, .document_ids = {}}));
  const at::Tensor found = module.forward({ids}).toTensor();
  require(found.sizes() == expected.sizes(), "TorchScript: logits have another shape than the model's");
  if (expected.numel() == 0) return 0;
  const auto difference = (found - expected).abs().max().item<double>();
  return difference == 0 ? 0 : difference / expected.abs().max().item<double>();
}

void save_torchscript(const torch::jit::Module& module, const std::filesystem::path& path,
                      const ExtraFiles& extra_files) {
  AtomicFile file(path);
  // Nothing may be thrown through the archive's writer: its destructor writes once more.
  std::exception_ptr failure;
  const auto write = [&](const void* bytes, std::size_t size) {
    try {
      if (!failure) file.write({static_cast<const std::byte*>(bytes), size});
    } catch (const Error&) {
      failure = std::current_exception();
    }
    return size;
  };
  torch::jit::ExportModule(module, write, extra_files);
  if (failure) std::rethrow_exception(failure);
  file.commit();
}

torch::jit::Module load_torchscript(const std::filesystem::path& path, c10::Device device, ExtraFiles* extra_files) {
  require(std::filesystem::is_regular_file(path), "{}: no such file", path.string());
  if (device.is_cuda()) {
    std::string reason;
    require(load_cuda(&reason), "{}: device {}: no GPU can be used: {}", path.string(), device.str(), reason);
  }
  try {
    ExtraFiles none;
    return torch::jit::load(path.string(), device, extra_files != nullptr ? *extra_files : none);
  } catch (const c10::Error& error) {
    fail_to_load(path, error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail_to_load(path, error.what());
  }
}

TorchScriptExport export_torchscript(models::LanguageModel& model, const std::filesystem::path& path,
                                     const ExtraFiles& extra_files) {
  constexpr double kTolerance = 1e-5;
  torch::jit::Module module = make_torchscript(model);
  TorchScriptExport result;
  result.difference = torchscript_difference(model, module, sample_ids(model.config()));
  require(result.difference <= kTolerance,
          "{}: not written: the TorchScript model's logits differ from the model's by {:.1e} of the largest, more than "
          "{:.0e}",
          path.string(), result.difference, kTolerance);
  for (const char* name : {"forward", "step", "gates", "set_gate_intervention"}) {
    if (module.find_method(name)) result.methods.emplace_back(name);
  }
  save_torchscript(module, path, extra_files);
  return result;
}

}  // namespace satformer::exchange
