// libsatformer_nccl: the one function that needs LibTorch's CUDA half, loaded where ranks are on GPUs.
#include <cstdint>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

// Returns an owned reference.
extern "C" c10d::Backend* satformer_make_nccl(const c10::intrusive_ptr<c10d::Store>* store, int rank, int size,
                                              std::int64_t timeout_ms, int device_index) {
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(timeout_ms);
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(*store, rank, size, options);
  backend->setBoundDeviceId(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_index)));
  return backend.release();
}
