// A model's config.json: what it takes survives being written and read, and its derived sizes can be computed.
#include "satformer/models/model_config.h"

#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(bytes_of(data, size));
  const AllocationLimit limit(64 * size + (std::size_t{1} << 20));  // the keys and their defaults
  accepts("config.json", [&] {
    const models::ModelConfig config = models::parse_model_config(text, "config.json");
    for (const std::int64_t layer : {std::int64_t{0}, config.num_hidden_layers - 1}) {
      expect(config.layer_intermediate_size(layer) > 0, "every layer has an MLP");
      expect(!config.mixes_values(layer) || layer > 0, "layer 0 mixes nothing");
    }
    const auto written = models::model_config_to_json(config);
    const models::ModelConfig again = models::parse_model_config(written.dump(), "written");
    expect(models::model_config_to_json(again) == written, "a configuration survives being written and read");
  });
  return 0;
}
