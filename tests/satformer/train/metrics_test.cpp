#include "satformer/train/metrics.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "tests/catch.h"
#include "tests/support/folders.h"

namespace {

using namespace satformer::train;
using Catch::Matchers::Contains;
using satformer::read_file;

void write_text(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("metrics.jsonl holds the documented fields", "[train]") {
  const satformer::testing::TemporaryFolder folder;
  {
    MetricsWriter writer(folder.path(), false);
    writer.write({.step = 1, .tokens = 512, .loss = 6.25, .learning_rate = 1e-3, .grad_norm = 0.5, .seconds = 0.12345});
    writer.write({.step = 2, .tokens = 1024, .learning_rate = 1e-3, .skipped = true});
    writer.write(ValidationMetrics{2, 5.0, 4096});
  }
  std::ifstream file(folder.path() / "metrics.jsonl");
  std::string line;
  std::getline(file, line);
  auto object = nlohmann::json::parse(line);
  CHECK(object["step"] == 1);
  CHECK(object["tokens"] == 512);
  CHECK(object["loss"] == 6.25);
  CHECK(object["lr"] == 1e-3);
  CHECK(object["grad_norm"] == 0.5);
  CHECK(object["seconds"] == 0.123);
  CHECK_FALSE(object.contains("skipped"));
  std::getline(file, line);
  object = nlohmann::json::parse(line);
  CHECK(object["skipped"] == true);
  CHECK_FALSE(object.contains("loss"));
  CHECK_FALSE(object.contains("grad_norm"));
  std::getline(file, line);
  object = nlohmann::json::parse(line);
  CHECK(object["val_loss"] == 5.0);
  CHECK(object["val_perplexity"].get<double>() == Approx(148.4131591));
  CHECK(object["val_tokens"] == 4096);
  CHECK_THROWS_WITH(MetricsWriter(folder.path(), false), Contains("exists already"));
}

TEST_CASE("resuming cuts later lines and a half-written one", "[train]") {
  const satformer::testing::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  const std::string kept = "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"val_loss\":1.0}\n";
  write_text(path, kept + "{\"step\":3}\n{\"step\":3,\"val_loss\":1.0}\n{\"ste");
  {
    MetricsWriter writer(folder.path(), false, 2);
  }
  CHECK(read_file(path) == kept);
  cut_metrics_after(path, 0);
  CHECK(read_file(path).empty());
  write_text(path, "{\"step\":1}\nnonsense\n");
  CHECK_THROWS_WITH(cut_metrics_after(path, 5), Contains("line 2 is no metrics line"));
  CHECK_NOTHROW(cut_metrics_after(folder.path() / "absent.jsonl", 5));
}

TEST_CASE("TensorBoard event files: records, masked CRCs, names in order", "[train]") {
  const satformer::testing::TemporaryFolder folder;
  std::filesystem::path first, second;
  {
    EventWriter writer(folder.path() / "tensorboard");
    writer.add(7, {{"train/loss", 2.5}});
    first = writer.path();
    second = EventWriter(folder.path() / "tensorboard", 8).path();
  }
  CHECK(first.filename().string() < second.filename().string());
  CHECK_THAT(first.filename().string(), Contains("tfevents"));
  const std::string bytes = read_file(first);
  // The first record: an event of 24 bytes (wall time, version), whose length's masked CRC is a known value.
  REQUIRE(bytes.size() > 40);
  CHECK(static_cast<unsigned char>(bytes[0]) == 24);
  CHECK(bytes.substr(8, 4) == std::string("\xa3\x7f\x4b\x22", 4));
  CHECK(bytes.substr(12 + 9 + 2, 13) == "brain.Event:2");
  CHECK_THAT(bytes, Contains("train/loss"));
}
