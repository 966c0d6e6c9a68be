#pragma once
// LibTorch ships Gloo inside libtorch_cpu, but not Gloo's headers, which ProcessGroupGloo.hpp includes. This folder
// declares what that header names, no more: nothing of Gloo is made, derived from or looked into by our code.
#include <chrono>
#include <memory>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
