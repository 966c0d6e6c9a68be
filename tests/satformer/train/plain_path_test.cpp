// training.fused false: the same run from plain operators.
#include "tests/catch.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

namespace satformer::train {
namespace {

std::vector<double> losses_of(const std::filesystem::path& data, const std::filesystem::path& output,
                              std::vector<std::string> overrides) {
  overrides.insert(overrides.end(), {"max_steps=6", "eval_interval=0", "checkpoint_interval=0"});
  const RunConfig config = testing::tiny_config(data, overrides);
  Trainer trainer(config, testing::tiny_options(output));
  std::vector<double> losses;
  for (int i = 0; i < 6; ++i) losses.push_back(trainer.step().loss);
  return losses;
}

}  // namespace

TEST_CASE("a plain run has the fused run's losses", "[train][plain]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  for (const std::vector<std::string>& also :
       std::vector<std::vector<std::string>>{{}, {"gradient_checkpointing=true"}, {"document_mask=true"}}) {
    const std::vector<double> fused = losses_of(data, folder.path() / "fused", also);
    std::vector<std::string> plain_overrides = also;
    plain_overrides.emplace_back("training.fused=false");
    const std::vector<double> plain = losses_of(data, folder.path() / "plain", plain_overrides);
    for (std::size_t i = 0; i < fused.size(); ++i) CHECK(plain[i] == Approx(fused[i]).epsilon(1e-6));
  }
}

}  // namespace satformer::train
