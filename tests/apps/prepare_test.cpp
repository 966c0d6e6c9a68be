// prepare as a process: what only shows from outside.
#include <fstream>
#include <random>

#include "tests/apps/child_process.h"
#include "tests/sanitized.h"
#include "tests/support/folders.h"

// Torch-free, but kept in the order that catch.h asks for.
#include "tests/catch.h"

namespace {

using namespace satformer::testing;

// Lines of eight words out of a few thousand, each line with its number.
void write_lines(const std::filesystem::path& path, std::int64_t bytes) {
  const std::vector<std::string> syllables{"ka", "ro", "mi", "ten", "sul", "va", "or", "den", "pli", "go", "ne", "sha"};
  std::mt19937_64 random(5);
  const auto syllable = [&] { return syllables[random() % syllables.size()]; };
  std::ofstream file(path);
  for (std::int64_t line = 0; file.tellp() < bytes; ++line) {
    file << line;
    for (int word = 0; word < 8; ++word) file << ' ' << syllable() << syllable() << syllable();
    file << '\n';
  }
}

}  // namespace

TEST_CASE("prepare's memory does not grow with its input", "[apps][prepare]") {
  const TemporaryFolder folder;
  write_lines(folder.path() / "small.txt", 3'000'000);
  write_lines(folder.path() / "large.txt", 30'000'000);
  const auto prepare = [&](const std::string& name, const std::vector<std::string>& tokenizer) {
    std::vector<std::string> arguments{"prepare",
                                       "--input",
                                       folder.path() / (name + ".txt"),
                                       "--output",
                                       folder.path() / name,
                                       "--threads",
                                       "2",
                                       "--document-per",
                                       "line"};
    arguments.insert(arguments.end(), tokenizer.begin(), tokenizer.end());
    const CommandResult result = run_command(arguments, folder.path());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.peak_memory_kib;
  };
  prepare("small", {"--vocab-size", "500"});
  std::filesystem::rename(folder.path() / "small", folder.path() / "first");
  const std::vector<std::string> tokenizer{"--tokenizer", folder.path() / "first/tokenizer.model"};
  const long small = prepare("small", tokenizer), large = prepare("large", tokenizer);
  INFO(small << " KiB, then " << large << " KiB");
  // 27 MB more text, of which not even the bytes were held; both runs fill the queues.
  if (!kSanitized) CHECK(large - small < 20L * 1024);
}
