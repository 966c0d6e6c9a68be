// The strict JSON parser: what it takes comes back from its own text. And the checksum in a text's second line.
#include "satformer/io/sealed_json.h"
#include "satformer/io/strict_json.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(bytes_of(data, size));
  accepts("f.json", [&] { expect(seal_json(unseal_json(text, "f.json")) == text, "a seal is that of its text"); });
  nlohmann::json value;
  bool accepted = false;
  {
    const AllocationLimit limit(64 * size + 65536);
    accepted = accepts("f.json", [&] { value = parse_strict_json(text, "f.json"); });
  }
  if (!accepted) return 0;
  expect(parse_strict_json(value.dump(), "dump") == value, "a value survives being written and read");
  expect(shortened(value).size() <= 200, "a value in an error is short");
  return 0;
}
