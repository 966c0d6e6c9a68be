// Runs a fuzz target on files: TARGET FILE|FOLDER... What a compiler without libFuzzer makes of a target.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "satformer/io/files.h"
#include "tests/fuzz/fuzz.h"

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t runs = 0;
  for (int i = 1; i < count; ++i) {
    for (const fs::path& file : files_of(arguments[i])) {
      std::printf("%s\n", file.c_str());
      std::fflush(stdout);  // the last line names the input at which the program ended
      const std::string bytes = satformer::read_file(file);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++runs;
    }
  }
  std::printf("%zu inputs\n", runs);
  return runs > 0 ? 0 : 1;
}
