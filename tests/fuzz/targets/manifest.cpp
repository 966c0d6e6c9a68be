// A checkpoint's manifest: one text alone stands for its entries, and no name leads out of the folder.
#include "satformer/checkpoint/manifest.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(bytes_of(data, size));
  const AllocationLimit limit(128 * size + 65536);
  accepts("manifest.json", [&] {
    const checkpoint::Manifest manifest = checkpoint::parse_manifest(text, "manifest.json");
    expect(checkpoint::format_manifest(manifest) == text, "a manifest is in its canonical form");
    for (const auto& [name, entry] : manifest) {
      expect(std::filesystem::path(name).filename() == name && name != "." && name != "..",
             "a name is that of a file in the folder");
    }
  });
  return 0;
}
