// trainer.json: what it takes survives being written and read.
#include "satformer/checkpoint/trainer_state.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(bytes_of(data, size));
  const AllocationLimit limit(128 * size + 65536);
  accepts("trainer.json", [&] {
    const checkpoint::TrainerState state = checkpoint::parse_trainer_state(text, "trainer.json");
    expect(state.step >= 0 && state.samples >= 0 && state.tokens >= 0, "no count is negative");
    const std::string written = checkpoint::format_trainer_state(state, "0");
    expect(checkpoint::format_trainer_state(checkpoint::parse_trainer_state(written, "written"), "0") == written,
           "a state survives being written and read");
  });
  return 0;
}
