#include "tests/paths.h"

namespace satformer::testing {

std::filesystem::path source_dir() { return SATFORMER_SOURCE_DIR; }
std::filesystem::path test_data_dir() { return source_dir() / "tests/data"; }
std::filesystem::path cli() { return SATFORMER_CLI; }
std::filesystem::path toy_cli() { return cli().parent_path() / "satformer_toy"; }
std::filesystem::path shared_dir() { return source_dir().parent_path() / "shared"; }

}  // namespace satformer::testing
