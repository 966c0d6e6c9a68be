#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SATFORMER_COUNT_ALLOCATIONS 1
#endif
#endif
#ifdef SATFORMER_COUNT_ALLOCATIONS
#include <sanitizer/allocator_interface.h>
#endif

namespace satformer::fuzzing {
namespace {

constexpr std::size_t kMaxErrorBytes = 2000;

// The sanitizer's hooks are plain functions, so what they count is static. The readers under test use one thread.
struct Allocations {
  std::size_t now = 0, start = 0, peak = 0;
};
#ifdef SATFORMER_COUNT_ALLOCATIONS
Allocations allocations;

void on_malloc(const volatile void*, std::size_t bytes) {
  allocations.now += bytes;
  allocations.peak = std::max(allocations.peak, allocations.now);
}

void on_free(const volatile void* pointer) {
  if (pointer == nullptr) return;
  const std::size_t bytes = __sanitizer_get_allocated_size(pointer);
  allocations.now -= std::min(allocations.now, bytes);  // what was allocated before the hooks were there
}

void count_allocations() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  if (installed == 0) std::abort();
  allocations.start = allocations.peak = allocations.now;
}

std::size_t peak_growth() { return allocations.peak - allocations.start; }
#else
void count_allocations() {}
std::size_t peak_growth() { return 0; }
#endif

}  // namespace

std::string_view bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void expect(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken promise: %s\n", promise);
  std::abort();
}

void expect_good_error(std::string_view text, std::string_view source) {
  const bool good = text.starts_with(source) && text.size() <= source.size() + kMaxErrorBytes &&
                    std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; });
  if (!good) std::fprintf(stderr, "fuzz: the error is: %.*s\n", static_cast<int>(text.size()), text.data());
  expect(good, "an error is one line of bounded length that begins with the source");
}

AllocationLimit::AllocationLimit(std::size_t bytes) : bytes_(bytes) { count_allocations(); }

AllocationLimit::~AllocationLimit() {
  const std::size_t growth = peak_growth();
  if (growth > bytes_) std::fprintf(stderr, "fuzz: %zu bytes were allocated, allowed are %zu\n", growth, bytes_);
  expect(growth <= bytes_, "allocation is bounded by the size of the input");
}

ScratchFile::ScratchFile(const std::string& name) {
  std::string folder = (std::filesystem::temp_directory_path() / "satformer_fuzz_XXXXXX").string();
  expect(::mkdtemp(folder.data()) != nullptr, "the temporary folder can be written");
  path_ = std::filesystem::path(folder) / name;
}

ScratchFile::~ScratchFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder(), ignored);
}

void ScratchFile::write(std::string_view contents) const {
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  file.close();
  expect(file.good(), "the temporary file can be written");
}

}  // namespace satformer::fuzzing
