#include "satformer/runtime/cuda_graph.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <utility>

namespace satformer {
namespace {

template <typename Signature>
auto graph_operator(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("satformer::device_graph_") + name).c_str(), "")
      .typed<Signature>();
}

}  // namespace

CudaGraph::CudaGraph(c10::Device device, std::function<void()> work) : work_(std::move(work)) {
  if (device.is_cpu()) return;
  const std::int64_t graph = graph_operator<std::int64_t()>("begin").call();
  const auto end = [graph] { graph_operator<void(std::int64_t)>("end").call(graph); };
  try {
    work_();
  } catch (...) {
    try {
      end();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the first error says more
    }
    throw;
  }
  end();
  graph_ = graph;
}

CudaGraph::~CudaGraph() {
  if (graph_) graph_operator<void(std::int64_t)>("free").call(*graph_);
}

void CudaGraph::run() {
  if (graph_) {
    graph_operator<void(std::int64_t)>("replay").call(*graph_);
  } else {
    work_();
  }
}

}  // namespace satformer
