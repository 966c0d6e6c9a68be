#pragma once
#include <string>

namespace satformer {

// Reduces a foreign exception's text (LibTorch's have many lines) to its first line.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace satformer
