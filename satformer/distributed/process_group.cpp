#include "satformer/distributed/process_group.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "satformer/core/error.h"
#include "satformer/core/first_line.h"

namespace satformer::distributed {
namespace {

constexpr const char* kNcclLibrary = "libsatformer_nccl.so";
constexpr const char* kNcclFunction = "satformer_make_nccl";

bool is_loopback(const std::string& address) {
  return address == "localhost" || address.starts_with("127.") || address == "::1";
}

std::shared_ptr<gloo::transport::Device> gloo_device(const std::string& master_address) {
  using c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface != nullptr && *interface != '\0') {
    return ProcessGroupGloo::createDeviceForInterface(interface);
  }
  if (is_loopback(master_address)) return ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return ProcessGroupGloo::createDefaultDevice();
}

void* load_nccl_function() {
  Dl_info info{};
  require(::dladdr(reinterpret_cast<const void*>(&make_nccl), &info) != 0, "cannot find this library's own folder");
  const std::filesystem::path library = std::filesystem::path(info.dli_fname).parent_path() / kNcclLibrary;
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* function = handle == nullptr ? nullptr : ::dlsym(handle, kNcclFunction);
  require(function != nullptr, "several ranks on GPUs need NCCL: {} cannot be loaded ({})", library.string(),
          handle == nullptr ? ::dlerror() : "it lacks a function");
  return function;
}

}  // namespace

BackendPtr make_gloo(const StorePtr& store, const RankInfo& info, std::chrono::milliseconds timeout) {
  const auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(gloo_device(info.master_address));
  const auto prefixed = c10::make_intrusive<c10d::PrefixStore>("gloo", store);
  try {
    return c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, info.rank, info.size, options);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    fail("the ranks cannot connect to one another: {}; GLOO_SOCKET_IFNAME names the network interface to use",
         first_line(text));
  }
}

BackendPtr make_nccl(const StorePtr& store, const RankInfo& info, std::chrono::milliseconds timeout,
                     c10::Device device) {
  using Make = c10d::Backend* (*)(const StorePtr*, int, int, std::int64_t, int);
  const auto make = reinterpret_cast<Make>(load_nccl_function());
  const StorePtr prefixed = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
  return BackendPtr::reclaim(make(&prefixed, info.rank, info.size, timeout.count(), device.index()));
}

}  // namespace satformer::distributed
