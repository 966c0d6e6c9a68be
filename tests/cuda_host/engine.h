#pragma once
// Runs CUDA kernels on the host, one thread of one block at a time (docs/cuda_host.md), and gives them guarded memory.
// One launch at a time, always from the same host thread.
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cuda_host {

// The order of threads at a block's start and after each rendezvous. Random has two kinds: with an even seed any thread
// that can run is next; with an odd one a warp, drawn anew after each barrier, runs ahead of the others as far as it
// can.
enum class Order { kForward, kReverse, kRandom };
struct Options {
  Order order = Order::kRandom;
  unsigned seed = 1;
};
extern Options options;

// A fault of the kernel or a launch that no GPU would take.
struct Error : std::runtime_error {
  using runtime_error::runtime_error;
};

// A kernel alone, without its launcher.
template <typename... Parameters, typename... Arguments>
void launch(dim3 blocks, dim3 threads, size_t shared_bytes, void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// "Device" memory, filled with 0xff (NaN). Its last byte, rounded up to 16, lies before a page that faults; before its
// first byte are canaries and such a page. `shift` bytes take its start off the 16-byte grid.
void* allocate_guarded(size_t bytes, size_t shift, const char* name);
void free_guarded(void* pointer);
// Throws when a canary has changed; every launch ends with it.
void check_canaries();

template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t size, const char* name = "buffer", size_t shift = 0)
      : size_(size), data_(static_cast<T*>(allocate_guarded(size * sizeof(T), shift * sizeof(T), name))) {}
  explicit Buffer(const std::vector<T>& values, const char* name = "buffer", size_t shift = 0)
      : Buffer(values.size(), name, shift) {
    std::copy(values.begin(), values.end(), data_);
  }
  Buffer(Buffer&& other) noexcept : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { free_guarded(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  operator T*() { return data_; }
  operator const T*() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  size_t size_;
  T* data_;
};

}  // namespace cuda_host
