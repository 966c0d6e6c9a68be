#pragma once
// How much memory a process, or a device's allocator, holds and has held.
#include <c10/core/Device.h>

#include <cstdint>

namespace satformer::bench {

constexpr double kMebibyte = 1 << 20;  // bytes

// Of this process, in bytes: what is resident now, and the most that ever was (VmRSS and VmHWM of /proc/self/status).
std::int64_t resident_bytes();
std::int64_t peak_resident_bytes();

// Of a device's caching allocator, in bytes: the most that tensors held at once since the process began.
std::int64_t peak_allocated_bytes(c10::Device device);

// Gives the allocator's unused memory back, so that other processes can have it. Nothing on the CPU.
void release_cached_memory(c10::Device device);

// Waits for everything that was asked of the device. Nothing on the CPU.
void synchronize(c10::Device device);

}  // namespace satformer::bench
