// dataset.json: what it takes survives being written and read.
#include "satformer/data/token_dataset.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(bytes_of(data, size));
  const AllocationLimit limit(128 * size + 65536);
  accepts("dataset.json", [&] {
    const std::string written = data::format_dataset_info(data::parse_dataset_info(text, "dataset.json"));
    expect(data::format_dataset_info(data::parse_dataset_info(written, "written")) == written,
           "a description survives being written and read");
  });
  return 0;
}
