// A whole safetensors file: the tensors' bytes are those of the file.
#include "satformer/io/safetensors_file.h"

#include <cstring>
#include <vector>

#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFile scratch("model.safetensors");
  scratch.write(bytes_of(data, size));
  const AllocationLimit limit(64 * size + 65536);
  accepts(scratch.path().string(), [&] {
    SafetensorsFile file(scratch.path());
    std::uint64_t data_bytes = 0;
    for (const SafetensorsEntry& entry : file.header().entries) data_bytes += entry.end - entry.begin;
    expect(data_bytes <= size, "tensors are no larger than their file");
    const std::uint8_t* tensors = data + (size - data_bytes);
    for (const SafetensorsEntry& entry : file.header().entries) {
      std::vector<std::byte> bytes(entry.end - entry.begin);
      file.read_next(bytes);
      expect(bytes.empty() || std::memcmp(bytes.data(), tensors + entry.begin, bytes.size()) == 0,
             "a tensor's bytes are the file's");
    }
  });
  return 0;
}
