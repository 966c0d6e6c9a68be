#pragma once
// Work on fixed memory that is run many times. On a GPU it becomes a CUDA graph: one launch instead of hundreds. On the
// CPU it is called again.
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace satformer {

class CudaGraph {
 public:
  // Records `work`, which is not run yet. It may not wait for the GPU, and what it reads and writes must stay where it
  // is for as long as the object lives; memory that it allocates itself belongs to the graph.
  CudaGraph(c10::Device device, std::function<void()> work);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void run();

 private:
  std::function<void()> work_;
  std::optional<std::int64_t> graph_;  // of csrc/cuda/device_graph.cpp; none on the CPU
};

}  // namespace satformer
