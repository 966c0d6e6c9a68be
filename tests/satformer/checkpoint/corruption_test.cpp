// One changed byte anywhere in a checkpoint or in a prepared data folder: loading fails and names the file.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/checkpoint/manifest.h"
#include "satformer/checkpoint/parameters.h"
#include "satformer/core/error.h"
#include "satformer/data/prepare.h"
#include "satformer/io/files.h"
#include "satformer/optim/parameter_groups.h"
#include "tests/catch.h"
#include "tests/satformer/data/support.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

namespace {

using namespace satformer;
using namespace satformer::train;
using Catch::Matchers::Contains;

constexpr const char* kVocabulary = "vocab_size=320";
constexpr std::int64_t kVocabularySize = 320;

// Data of several shards, made by prepare, and a run on it with one checkpoint.
struct CorruptionSetting {
  testing::TemporaryFolder folder;
  std::filesystem::path data = folder.path() / "data", run = folder.path() / "run";
  RunConfig config;
  std::filesystem::path checkpoint;

  CorruptionSetting() {
    const std::filesystem::path text = folder.path() / "text.txt";
    testing::write_text(text, testing::made_up_lines(300));
    data::PrepareOptions options;
    options.inputs = {text};
    options.output = data;
    options.corpus.values["document-per"] = "line";
    options.training.vocab_size = kVocabularySize;
    options.val_fraction = 0.1;
    options.shard_tokens = 2000;
    options.threads = 1;
    data::prepare(options);
    config = testing::tiny_config(data, {kVocabulary, "max_steps=2", "logging.tensorboard=false"});
    TrainerOptions trainer_options;
    trainer_options.output = run;
    checkpoint = Trainer(config, trainer_options).run().checkpoint;
  }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& directory : {checkpoint, data}) {
      for (const auto& entry : std::filesystem::directory_iterator(directory)) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());  // the same order everywhere, for the seed
    return found;
  }
};

// Reads everything that training reads.
class Loader {
 public:
  explicit Loader(const CorruptionSetting& setting)
      : setting_(setting),
        model_(models::make_model(setting.config.model, 1)),
        optimizer_(optim::make_parameter_groups(checkpoint::named_parameters(*model_), 0.1),
                   setting.config.training.adamw) {}

  // The error's message; empty when all is whole.
  std::string message() {
    try {
      checkpoint::restore(setting_.checkpoint, *model_, optimizer_, [](const checkpoint::TrainerState&) {});
      for (const char* split : {"train", "val"}) {
        data::TokenDataset::open(setting_.data, split, {.vocab_size = kVocabularySize});
      }
      data::read_dataset_info(setting_.data);
      data::find_tokenizer(setting_.data);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  const CorruptionSetting& setting_;
  std::shared_ptr<models::LanguageModel> model_;
  optim::AdamW optimizer_;
};

// Changes one byte while it lives.
class ChangedByte {
 public:
  ChangedByte(std::filesystem::path path, std::uint64_t position, char mask)
      : path_(std::move(path)), position_(static_cast<std::streamoff>(position)), mask_(mask) {
    flip();
  }
  ~ChangedByte() { flip(); }
  ChangedByte(const ChangedByte&) = delete;
  ChangedByte& operator=(const ChangedByte&) = delete;

 private:
  void flip() const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(position_);
    const int byte = file.get();
    file.seekp(position_);
    file.put(static_cast<char>(byte ^ mask_));
  }

  std::filesystem::path path_;
  std::streamoff position_;
  char mask_;
};

void require_named(Loader& loader, const std::filesystem::path& path, std::uint64_t position, char mask) {
  const ChangedByte changed(path, position, mask);
  const std::string message = loader.message();
  INFO(path << " byte " << position << " ^ " << static_cast<int>(mask) << ": " << message);
  REQUIRE(message.starts_with(path.string() + ": "));
  REQUIRE(message.find('\n') == std::string::npos);
}

// Not 0.
char random_mask(std::mt19937& random) { return static_cast<char>(1 + random() % 255); }

// Bytes from the start that a program reads before it knows what follows; all of a file of JSON.
std::uint64_t header_bytes(const std::filesystem::path& path) {
  const std::uint64_t size = std::filesystem::file_size(path);
  if (path.extension() == ".json") return size;
  if (path.extension() != ".safetensors") return std::min<std::uint64_t>(size, 64);
  std::uint64_t json_bytes = 0;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&json_bytes), sizeof(json_bytes));
  return sizeof(json_bytes) + json_bytes;
}

}  // namespace

TEST_CASE("500 random changes of a byte, in any file, are found and the file named", "[train][corruption]") {
  const CorruptionSetting setting;
  const std::vector<std::filesystem::path> files = setting.files();
  REQUIRE(files.size() >= 6 + 5);  // a checkpoint with its tokenizer; at least three shards, tokenizer, dataset.json
  Loader loader(setting);
  REQUIRE(loader.message().empty());
  const std::uint32_t seed = std::random_device()();  // printed with a failure
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    const auto& path = files[random() % files.size()];
    require_named(loader, path, random() % std::filesystem::file_size(path), random_mask(random));
  }
  REQUIRE(loader.message().empty());
}

TEST_CASE("every byte of every header is covered", "[train][corruption]") {
  const CorruptionSetting setting;
  Loader loader(setting);
  std::mt19937 random(1);  // NOLINT: the masks alone
  for (const auto& path : setting.files()) {
    const std::uint64_t bytes = header_bytes(path);
    REQUIRE(bytes >= 64);
    for (std::uint64_t position = 0; position < bytes; ++position) {
      require_named(loader, path, position, random_mask(random));
    }
  }
  REQUIRE(loader.message().empty());
}

TEST_CASE("training starts with nothing that is damaged", "[train][corruption]") {
  const CorruptionSetting setting;
  const auto start = [&](const std::filesystem::path& damaged) {
    const ChangedByte changed(damaged, 100, 1);
    TrainerOptions options;
    options.output = setting.run;
    options.resume = {.newest = true};
    CHECK_THROWS_WITH(Trainer(setting.config, options), Contains(damaged.string() + ": "));
  };
  for (const char* name : {"train_000000.bin", "train_000001.bin", "tokenizer.model", "dataset.json"}) {
    start(setting.data / name);
  }
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "trainer.json", "config.json",
                           "tokenizer.model", "manifest.json"}) {
    start(setting.checkpoint / name);
  }
}
