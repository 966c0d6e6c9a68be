#pragma once
// A thread's memory. (No std::vector: its code for this capability could be linked in elsewhere; csrc/cpu/gate_row.h
// says why everything here lives in the capability's own namespace.)
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <cstdint>

namespace satformer::ops::inline CPU_CAPABILITY {

// n numbers or pointers, not initialised, on 64 bytes.
template <typename T>
class Scratch {
 public:
  explicit Scratch(std::int64_t n)
      : data_(static_cast<T*>(c10::alloc_cpu(std::max<std::int64_t>(n, 1) * static_cast<std::int64_t>(sizeof(T))))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { c10::free_cpu(static_cast<void*>(data_)); }
  T* get() const { return data_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace satformer::ops::inline CPU_CAPABILITY
