// gzip and zstd as streams of bytes. The lowest bit of the first byte chooses the format, the others how much is read
// at a time.
#include <vector>

#include "satformer/data/byte_source.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

namespace {

constexpr std::size_t kMaxRead = std::size_t{1} << 18;  // a few bytes can stand for gigabytes

struct Contents {
  bool accepted = false;
  std::string bytes;  // the first kMaxRead at most
};

Contents read_all(const ScratchFile& scratch, std::size_t file_bytes, std::size_t piece) {
  Contents contents;
  contents.accepted = accepts(scratch.path().string(), [&] {
    const auto source = data::open_byte_source(scratch.path());
    std::vector<char> buffer(piece);
    std::size_t count = 0;
    while (contents.bytes.size() < kMaxRead && (count = source->read(buffer)) > 0) {
      expect(count <= piece, "no more is given than was asked for");
      contents.bytes.append(buffer.data(), count);
      expect(source->file_position() <= file_bytes, "the position lies in the file");
    }
    if (count == 0) expect(source->file_position() == file_bytes, "a stream ends with its file");
  });
  contents.bytes.resize(std::min(contents.bytes.size(), kMaxRead));
  return contents;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFile gzip("corpus.txt.gz"), zstd("corpus.txt.zst");
  if (size == 0) return 0;
  const ScratchFile& scratch = (data[0] & 1) == 0 ? gzip : zstd;
  scratch.write(bytes_of(data, size).substr(1));
  // A zstd frame may ask for a window of 128 MiB; besides, the bytes collected here.
  const AllocationLimit limit((std::size_t{128} << 20) + 32 * kMaxRead);
  const Contents whole = read_all(scratch, size - 1, kMaxRead);
  const Contents pieces = read_all(scratch, size - 1, 1 + (data[0] >> 1));
  if (whole.accepted && pieces.accepted) expect(whole.bytes == pieces.bytes, "the bytes do not depend on the reader");
  if (whole.bytes.size() < kMaxRead) expect(whole.accepted == pieces.accepted, "a fault does not depend on the reader");
  return 0;
}
