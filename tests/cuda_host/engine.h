// Launcher and buffers of the host test harness (see engine.cpp).
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace cuda_host {
enum class Order { kForward, kReverse, kRandom };
struct Options {
  Order order = Order::kRandom;  // order of the threads between two rendezvous; random has two kinds, by seed % 2
  unsigned seed = 1;
  bool exited_ok = false;  // hardware lets barriers ignore returned threads; the manual does not promise it
};
extern Options options;

struct Error : std::runtime_error {
  using runtime_error::runtime_error;
};

void run(dim3 grid, dim3 block, size_t shared_bytes, void (*body)(void*), void* data);

template <class... P, class... A>
void launch(dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(P...), A&&... args) {
  struct Call {
    void (*kernel)(P...);
    std::tuple<P...> args;
  } call{kernel, {std::forward<A>(args)...}};
  run(
      grid, block, shared_bytes,
      [](void* p) {
        auto* c = static_cast<Call*>(p);
        std::apply(c->kernel, c->args);
      },
      &call);
}

// "Device" memory: its last byte (rounded up to 16) lies before an unmapped page, its first byte behind
// canaries and an unmapped page; filled with 0xFF (NaN). `shift` moves the start off 16-byte alignment.
void* buffer_alloc(size_t bytes, size_t align_shift, const char* name);
void buffer_free(void* p);
void check_buffers();  // canaries; run() calls it after every launch

template <class T>
class Buffer {
 public:
  explicit Buffer(size_t n, const char* name = "buffer", size_t shift = 0)
      : n_(n), p_(static_cast<T*>(buffer_alloc(n * sizeof(T), shift * sizeof(T), name))) {}
  Buffer(const std::vector<T>& v, const char* name = "buffer", size_t shift = 0) : Buffer(v.size(), name, shift) {
    std::copy(v.begin(), v.end(), p_);
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { buffer_free(p_); }
  T* data() { return p_; }
  operator T*() { return p_; }
  operator const T*() const { return p_; }
  size_t size() const { return n_; }
  T& operator[](size_t i) { return p_[i]; }

 private:
  size_t n_;
  T* p_;
};
}  // namespace cuda_host
