#pragma once
// Whether a regular expression of a data file may be handed to std::regex.
#include <string>

namespace satformer::analysis {

// Error names `where`, the pattern and what is wrong with it: repetition without bound, repetitions inside each other,
// more than 1000 repetitions in all, more than 1000 bytes, parentheses more than 16 deep.
void check_pattern(const std::string& pattern, const std::string& where);

}  // namespace satformer::analysis
