// Launcher: divides the parameters among launches and blocks.
#include "csrc/cuda/adamw_kernel.cuh"
#include "csrc/cuda/launch.cuh"

namespace satformer::ops::cuda {
namespace {

// Takes the parameters from `first` on that are computed in float64, or those that are not, until the table is full;
// returns where the next launch begins.
int64_t fill(AdamWTable& table, const AdamWItem* items, int64_t first, int64_t count, bool in_float64,
             int64_t& blocks) {
  table.count = 0;
  blocks = 0;
  int64_t i = first;
  for (; i < count && table.count < kMostUpdated; ++i) {
    const bool belongs = (items[i].parameter.dtype == DType::kFloat64) == in_float64;
    if (items[i].n == 0 || !belongs) continue;
    table.items[table.count] = items[i];
    table.first_block[table.count] = static_cast<int>(blocks);
    blocks += flat_blocks(items[i].n, kAdamWBlock);
    ++table.count;
  }
  return i;
}

}  // namespace

cudaError_t launch_adamw(const AdamWItem* items, int64_t count, const AdamWCoefficients& coefficients,
                         cudaStream_t stream) {
  AdamWTable table{};
  table.coefficients = coefficients;
  for (const bool in_float64 : {false, true}) {
    for (int64_t i = 0; i < count;) {
      int64_t blocks = 0;
      i = fill(table, items, i, count, in_float64, blocks);
      if (blocks == 0) continue;
      const LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kFlatThreads), stream};
      const cudaError_t error =
          in_float64 ? launch(adamw_kernel<double>, shape, table) : launch(adamw_kernel<float>, shape, table);
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

}  // namespace satformer::ops::cuda
