// A run's configuration, and after zero bytes the overrides of the command line.
#include "satformer/run/run_config.h"

#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = bytes_of(data, size);
  const auto next_part = [&] {
    const std::string part(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    return part;
  };
  const std::string text = next_part();
  std::vector<std::string> overrides;
  while (!rest.empty() && overrides.size() < 8) overrides.push_back(next_part());
  // The last of several is wrong at "--set ...".
  const AllocationLimit limit(256 * size + (std::size_t{1} << 20));  // the keys and their defaults
  accepts("", [&] {
    const train::RunConfig config = train::parse_run_config(text, "run.json", overrides);
    expect(config.training.sequences_per_step() > 0 && config.training.schedule.max_steps > 0,
           "a run has steps, and a step has sequences");
    const train::RunConfig again = train::parse_run_config(config.values.dump(), "written");
    expect(again.values == config.values, "a configuration survives being written and read");
  });
  return 0;
}
