#pragma once
// Where tests find things.
#include <filesystem>

namespace satformer::testing {

std::filesystem::path source_dir();     // the root of the tree
std::filesystem::path test_data_dir();  // tests/data
std::filesystem::path cli();            // the built executable `satformer`
std::filesystem::path toy_cli();        // the same with the additions of tests/toy
// Reference material that may lie beside the tree; tests that use it say so and pass when it is absent.
std::filesystem::path shared_dir();

}  // namespace satformer::testing
