#pragma once
// Devices. The executable links LibTorch's CPU half only; the CUDA half (libtorch_cuda and libsatformer_ops_cuda)
// is loaded at run time where there is a driver, so that one program serves machines with and without a GPU.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>

namespace satformer {

// Loads the CUDA half once. Returns whether a GPU can be used; otherwise `reason` says why not, in one line.
// Must run before anything asks ATen about CUDA (ATen remembers the first answer).
bool load_cuda(std::string* reason = nullptr);

// GPUs that can be used, by load_cuda; 0 without.
int num_gpus();

// "auto" (a GPU where there is one), "cpu", "cuda" (the first) or "cuda:N"; Error when it cannot be had.
c10::Device select_device(const std::string& name);

// `tensor`, of the CPU, on the device; undefined stays undefined. The copy to a GPU takes its turn among the GPU's
// work: the host waits for nothing.
at::Tensor to_device(const at::Tensor& tensor, c10::Device device);

}  // namespace satformer
