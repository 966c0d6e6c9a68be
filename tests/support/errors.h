#pragma once
// What a failing call says.
#include <exception>
#include <string>

#include "satformer/core/error.h"
#include "satformer/core/first_line.h"

namespace satformer::testing {

// The message of the Error that a call throws; "" when it throws none. Other exceptions pass.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The first line of whatever a call throws, LibTorch's exceptions included; "" when it throws nothing.
template <typename Call>
std::string exception_of(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace satformer::testing
