// CUDA graphs, for satformer/runtime/cuda_graph.h: operators without tensors, because the CUDA half is reached by
// the dispatcher alone. A graph's number is the address of its object.
//
//   device_graph_begin() -> int graph    what this thread gives the GPU from now on is recorded, not run
//   device_graph_end(int graph)          until here
//   device_graph_replay(int graph)       runs it on the current stream
//   device_graph_free(int graph)
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <cstdint>

namespace satformer::ops::cuda {
namespace {

struct RecordedGraph {
  at::cuda::CUDAGraph graph;
  c10::cuda::CUDAStream before = c10::cuda::getCurrentCUDAStream();
};

RecordedGraph* graph_of(int64_t graph) {
  return reinterpret_cast<RecordedGraph*>(graph);  // NOLINT(performance-no-int-to-ptr): made by begin()
}

// The default stream cannot be recorded: another one does, when all that was given before is done.
int64_t begin() {
  c10::cuda::device_synchronize();
  auto* recorded = new RecordedGraph;
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool());
  try {
    recorded->graph.capture_begin();
  } catch (...) {
    c10::cuda::setCurrentCUDAStream(recorded->before);
    delete recorded;
    throw;
  }
  return reinterpret_cast<int64_t>(recorded);
}

void end(int64_t graph) {
  RecordedGraph* recorded = graph_of(graph);
  try {
    recorded->graph.capture_end();
  } catch (...) {
    c10::cuda::setCurrentCUDAStream(recorded->before);
    throw;
  }
  c10::cuda::setCurrentCUDAStream(recorded->before);
}

void replay(int64_t graph) { graph_of(graph)->graph.replay(); }

void free(int64_t graph) { delete graph_of(graph); }

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  library.def("device_graph_begin() -> int", &satformer::ops::cuda::begin);
  library.def("device_graph_end(int graph) -> ()", &satformer::ops::cuda::end);
  library.def("device_graph_replay(int graph) -> ()", &satformer::ops::cuda::replay);
  library.def("device_graph_free(int graph) -> ()", &satformer::ops::cuda::free);
}
