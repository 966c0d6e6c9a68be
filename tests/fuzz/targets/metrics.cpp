// metrics.jsonl, which a resumed run cuts at its step: the first byte.
#include "satformer/train/metrics.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::int64_t step = data[0];
  const std::string text(bytes_of(data, size).substr(1));
  const AllocationLimit limit(128 * size + 65536);
  accepts("metrics.jsonl", [&] {
    const std::string kept = train::metrics_until(text, step, "metrics.jsonl");
    expect(kept.empty() || kept.back() == '\n', "only whole lines are kept");
    expect(kept.size() <= text.size(), "no line is added");
    expect(train::metrics_until(kept, step, "again") == kept, "cutting twice is cutting once");
  });
  return 0;
}
