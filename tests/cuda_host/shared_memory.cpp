// Shared memory: the program's thread_locals. All blocks run on one host thread, so that there is one copy, which is
// filled anew before each block.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "tests/cuda_host/block.h"
#include "tests/cuda_host/sanitizer.h"

namespace cuda_host {
namespace {

constexpr size_t kTail = 1024;  // watched bytes behind the dynamic shared memory

using Addresses = std::vector<void* (*)()>;
Addresses& registered() {
  static Addresses addresses;
  return addresses;
}

char* thread_locals_of_program() {
  char* start = nullptr;
  const auto first = [](dl_phdr_info* info, size_t, void* result) {  // the program itself comes first
    *static_cast<void**>(result) = info->dlpi_tls_data;
    return 1;
  };
  dl_iterate_phdr(first, &start);
  return start;
}

class ProgramFile {
 public:
  ProgramFile() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || fstat(file, &status) != 0) throw Error("cuda_host: cannot read /proc/self/exe");
    bytes_ = static_cast<size_t>(status.st_size);
    void* map = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (map == MAP_FAILED) throw Error("cuda_host: cannot map /proc/self/exe");
    data_ = static_cast<const char*>(map);
  }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;
  ~ProgramFile() { munmap(const_cast<char*>(data_), bytes_); }

  template <typename T>
  const T* at(size_t offset) const {
    return reinterpret_cast<const T*>(data_ + offset);
  }

 private:
  const char* data_;
  size_t bytes_;
};

// The thread_locals of the program by its symbol table, in order of address.
std::vector<SharedVariable> find_thread_locals() {
  const ProgramFile file;
  char* const start = thread_locals_of_program();
  const auto* header = file.at<ElfW(Ehdr)>(0);
  const auto* sections = file.at<ElfW(Shdr)>(header->e_shoff);
  std::vector<SharedVariable> found;
  bool has_symbols = false;
  for (int k = 0; k < header->e_shnum; ++k) {
    if (sections[k].sh_type != SHT_SYMTAB) continue;
    has_symbols = true;
    const auto* symbols = file.at<ElfW(Sym)>(sections[k].sh_offset);
    const char* names = file.at<char>(sections[sections[k].sh_link].sh_offset);
    for (size_t i = 0; i < sections[k].sh_size / sizeof *symbols; ++i) {
      const auto& symbol = symbols[i];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
      found.push_back({start + symbol.st_value, symbol.st_size, names + symbol.st_name});
    }
  }
  if (!has_symbols) throw Error("cuda_host: the test program has no symbol table (stripped?)");
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.data < b.data; });
  return found;
}

bool is_local_to_function(const SharedVariable& variable) { return variable.name.rfind("_ZZ", 0) == 0; }

std::vector<SharedVariable> find_static_shared() {
  const std::vector<SharedVariable> all = find_thread_locals();
  std::vector<SharedVariable> shared;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_local_to_function(all[i])) continue;
    shared.push_back(all[i]);
#if defined(CUDA_HOST_ASAN)  // GCC gives thread_locals no red zones; the gaps that alignment leaves serve at least
    char* const end = all[i].data + all[i].bytes;
    if (i + 1 < all.size() && end < all[i + 1].data) {
      __asan_poison_memory_region(end, std::min<size_t>(all[i + 1].data - end, 64));
    }
#endif
  }
  return shared;
}

size_t tail_of(size_t bytes) { return std::min(kTail, kLargestDynamicShared - bytes); }

}  // namespace

bool register_dynamic_shared(void* (*address)()) {
  registered().push_back(address);
  return true;
}

const std::vector<SharedVariable>& static_shared() {
  static const std::vector<SharedVariable> shared = find_static_shared();
  return shared;
}

std::vector<SharedVariable> dynamic_shared(size_t bytes) {
  std::vector<SharedVariable> shared;
  for (auto* address : registered()) shared.push_back({static_cast<char*>(address()), bytes, "dynamic"});
  return shared;
}

void prepare_shared(size_t dynamic_bytes) {
  for (const SharedVariable& variable : static_shared()) std::memset(variable.data, kFillByte, variable.bytes);
  for (auto* address : registered()) {
    char* data = static_cast<char*>(address());
    ASAN_ONLY(__asan_unpoison_memory_region(data, kLargestDynamicShared);)
    std::memset(data, kFillByte, dynamic_bytes);
    std::memset(data + dynamic_bytes, kCanaryByte, tail_of(dynamic_bytes));
    ASAN_ONLY(__asan_poison_memory_region(data + dynamic_bytes, kLargestDynamicShared - dynamic_bytes);)
  }
}

void check_shared(size_t dynamic_bytes) {
  for (auto* address : registered()) {
    const char* data = static_cast<const char*>(address());
    for (size_t i = dynamic_bytes; i < dynamic_bytes + tail_of(dynamic_bytes); ++i) {
      if (data[i] == kCanaryByte) continue;
      throw Error("cuda_host: block " + text_of(blockIdx) + " wrote past its " + std::to_string(dynamic_bytes) +
                  " bytes of dynamic shared memory, at byte " + std::to_string(i));
    }
  }
}

}  // namespace cuda_host
