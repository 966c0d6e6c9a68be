// The JSON header of safetensors: entries that it takes cover the data without gap, and can be written again. The first
// byte is the number of bytes of data.
#include "satformer/io/safetensors_header.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

namespace {

std::uint64_t bytes_needed(const SafetensorsEntry& entry) {
  std::uint64_t bytes = item_size(entry.type);
  for (const std::int64_t dimension : entry.shape) bytes *= static_cast<std::uint64_t>(dimension);
  return bytes;
}

void expect_layout(const SafetensorsHeader& header, std::uint64_t data_size) {
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    expect(entry.begin == position, "tensors follow each other");
    expect(entry.end == position + bytes_needed(entry), "a tensor's bytes are those of dtype and shape");
    position = entry.end;
  }
  expect(position == data_size, "tensors cover the data");
}

bool same(const SafetensorsEntry& a, const SafetensorsEntry& b) {
  return a.name == b.name && a.type == b.type && a.shape == b.shape && a.begin == b.begin && a.end == b.end;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint64_t data_size = data[0];
  const std::string_view json = bytes_of(data, size).substr(1);
  SafetensorsHeader header;
  bool accepted = false;
  {
    const AllocationLimit limit(64 * size + 65536);
    accepted = accepts("x", [&] { header = parse_safetensors_header(json, data_size, "x"); });
  }
  if (!accepted) return 0;
  expect_layout(header, data_size);
  const std::string text = format_safetensors_header(header, "written");
  const auto again = parse_safetensors_header(std::string_view(text).substr(8), data_size, "written");
  expect(again.metadata == header.metadata, "metadata survive being written and read");
  expect(std::equal(again.entries.begin(), again.entries.end(), header.entries.begin(), header.entries.end(), same),
         "entries survive being written and read");
  return 0;
}
