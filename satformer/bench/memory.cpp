#include "satformer/bench/memory.h"

#include <ATen/DeviceAccelerator.h>

#include <fstream>
#include <string>
#include <string_view>

#include "satformer/core/error.h"

namespace satformer::bench {
namespace {

// A line "VmHWM:     12345 kB".
std::int64_t status_bytes(std::string_view field) {
  constexpr const char* kPath = "/proc/self/status";
  std::ifstream file(kPath);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field) && line.size() > field.size() && line[field.size()] == ':') {
      return std::stoll(line.substr(field.size() + 1)) * 1024;
    }
  }
  fail("{}: no line {}", kPath, field);
}

}  // namespace

std::int64_t resident_bytes() { return status_bytes("VmRSS"); }
std::int64_t peak_resident_bytes() { return status_bytes("VmHWM"); }

std::int64_t peak_allocated_bytes(c10::Device device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return at::accelerator::getDeviceStats(device.index()).allocated_bytes.at(kAll).peak;
}

void release_cached_memory(c10::Device device) {
  if (!device.is_cpu()) at::accelerator::emptyCache();
}

void synchronize(c10::Device device) {
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
}

}  // namespace satformer::bench
