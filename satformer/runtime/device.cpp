#include "satformer/runtime/device.h"

#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <link.h>

#include <charconv>
#include <filesystem>
#include <string_view>

#include "satformer/core/error.h"

namespace satformer {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOpsLibrary = "libsatformer_ops.so";
constexpr const char* kCudaOpsLibrary = "libsatformer_ops_cuda.so";
constexpr const char* kTorchCudaLibrary = "libtorch_cuda.so";

struct CudaState {
  int gpus = 0;
  std::string reason;  // why there are none
};

// Libraries stay loaded for the life of the process: their registrations cannot be taken back.
void* load(const std::string& library) { return ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL); }

std::string load_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

// The folder of a loaded library; empty when it is not loaded.
fs::path folder_of_library(const char* name) {
  void* handle = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  link_map* map = nullptr;
  const bool found = ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0;
  const fs::path folder = found ? fs::path(map->l_name).parent_path() : fs::path();
  ::dlclose(handle);
  return folder;
}

// The folder of the library that holds a function.
fs::path folder_of_function(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 ? fs::path(info.dli_fname).parent_path() : fs::path();
}

// What the driver itself says, before a gigabyte of libraries is loaded. Its C interface is stable.
std::string ask_driver() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return fmt::format("no NVIDIA driver ({})", load_error());
  using Initialize = int (*)(unsigned);
  using Count = int (*)(int*);
  using Describe = int (*)(int, const char**);
  const auto initialize = reinterpret_cast<Initialize>(::dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<Count>(::dlsym(driver, "cuDeviceGetCount"));
  const auto describe = reinterpret_cast<Describe>(::dlsym(driver, "cuGetErrorString"));
  if (initialize == nullptr || count == nullptr || describe == nullptr) {
    return "libcuda.so.1 lacks the driver's functions";
  }
  int gpus = 0;
  int code = initialize(0);
  if (code == 0) code = count(&gpus);
  if (code != 0) {
    const char* text = nullptr;
    describe(code, &text);
    return fmt::format("the NVIDIA driver says: {} ({})", text == nullptr ? "unknown error" : text, code);
  }
  return gpus > 0 ? "" : "the NVIDIA driver finds no GPU";
}

// By our own run path, or else beside libtorch_cpu.so.
std::string load_torch_cuda() {
  if (load(kTorchCudaLibrary) != nullptr) return "";
  const std::string first = load_error();
  const fs::path folder = folder_of_function(reinterpret_cast<const void*>(&at::get_cpu_capability));
  if (load((folder / kTorchCudaLibrary).string()) != nullptr) return "";
  const std::string second = load_error();
  // The first error is only "not found" where the run path does not lead there; then the second tells more.
  const bool not_found = first.starts_with(kTorchCudaLibrary);
  return fmt::format("LibTorch's CUDA half cannot be loaded ({}); install the full torch package",
                     not_found ? second : first);
}

std::string load_kernels() {
  fs::path folder = folder_of_library(kOpsLibrary);
  if (folder.empty()) folder = folder_of_function(reinterpret_cast<const void*>(&load_cuda));
  const fs::path library = folder / kCudaOpsLibrary;
  std::error_code error;
  if (!fs::exists(library, error)) return fmt::format("built without CUDA kernels ({} is missing)", library.string());
  std::string reason = load_torch_cuda();
  if (!reason.empty()) return reason;
  if (load(library.string()) == nullptr) return fmt::format("the CUDA kernels cannot be loaded ({})", load_error());
  return "";
}

CudaState find_cuda() {
  for (const auto step : {ask_driver, load_kernels}) {
    if (std::string reason = step(); !reason.empty()) return {.gpus = 0, .reason = std::move(reason)};
  }
  const auto& hooks = at::detail::getCUDAHooks();
  const int gpus = hooks.hasCUDA() ? hooks.getNumGPUs() : 0;
  return {.gpus = gpus,
          .reason = gpus > 0 ? "" : "LibTorch can use no GPU here; is the NVIDIA driver too old for its CUDA?"};
}

const CudaState& cuda_state() {
  static const CudaState state = find_cuda();  // once; later calls see what the first one found
  return state;
}

c10::Device select_gpu(const std::string& name, std::string_view number) {
  std::string reason;
  require(load_cuda(&reason), "device \"{}\": no GPU can be used: {}", name, reason);
  int index = 0;
  if (!number.empty()) {
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    require(error == std::errc() && end == number.data() + number.size() && index >= 0 && index < num_gpus(),
            "device \"{}\": expected cuda:0 to cuda:{}", name, num_gpus() - 1);
  }
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace

bool load_cuda(std::string* reason) {
  const CudaState& state = cuda_state();
  if (reason != nullptr) *reason = state.reason;
  return state.gpus > 0;
}

int num_gpus() { return cuda_state().gpus; }

c10::Device select_device(const std::string& name) {
  if (name == "cpu") return c10::DeviceType::CPU;
  if (name == "auto") return load_cuda() ? select_gpu("cuda", "") : c10::Device(c10::DeviceType::CPU);
  if (name == "cuda") return select_gpu(name, "");
  constexpr std::string_view kNumbered = "cuda:";
  require(name.starts_with(kNumbered) && name.size() > kNumbered.size(),
          "device \"{}\": expected auto, cpu, cuda or cuda:N", name);
  return select_gpu(name, std::string_view(name).substr(kNumbered.size()));
}

at::Tensor to_device(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined() || device.is_cpu()) return tensor;
  return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace satformer
