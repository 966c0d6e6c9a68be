#include "tests/csrc/cuda_support.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "satformer/runtime/device.h"

#include "tests/catch.h"

namespace satformer::tests {

bool has_cuda() {
  std::string reason;
  if (load_cuda(&reason)) return true;
  const char* required = std::getenv("SATFORMER_REQUIRE_CUDA");
  if (required != nullptr && std::string_view(required) == "1") FAIL("no GPU can be used: " << reason);
  WARN("skipped: no GPU can be used: " << reason);
  return false;
}

at::Tensor to_cuda(const at::Tensor& x) {
  const auto elements = static_cast<std::int64_t>(x.storage().nbytes() / x.element_size());
  const at::Tensor memory = x.as_strided({elements}, {1}, 0).to(at::kCUDA);
  return memory.as_strided(x.sizes(), x.strides(), x.storage_offset());
}

at::Tensor on(at::Device device, const at::Tensor& x) { return x.defined() && device.is_cuda() ? to_cuda(x) : x; }

std::vector<at::Tensor> on(at::Device device, const std::vector<at::Tensor>& list) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& x : list) result.push_back(on(device, x));
  return result;
}

}  // namespace satformer::tests
