// Launcher: divides the tensors among launches and blocks.
#include "csrc/cuda/launch.cuh"
#include "csrc/cuda/sum_of_squares_kernel.cuh"

namespace satformer::ops::cuda {
namespace {

LaunchShape shape_of(int64_t blocks, cudaStream_t stream) {
  return {dim3(static_cast<unsigned>(blocks)), dim3(kFlatThreads), stream};
}

// The first stage for as many tensors from `first` on as a table holds; returns where the next launch begins. `blocks`
// counts those of all launches.
int64_t fill(SumOfSquaresTable& table, const SquaredNumbers* tensors, int64_t first, int64_t count, int64_t& blocks) {
  table.count = 0;
  blocks = 0;
  int64_t i = first;
  for (; i < count && table.count < kMostSquared; ++i) {
    if (tensors[i].n == 0) continue;
    table.numbers[table.count] = tensors[i].numbers;
    table.n[table.count] = tensors[i].n;
    table.first_block[table.count] = static_cast<int>(blocks);
    blocks += flat_blocks(tensors[i].n, kSumOfSquaresBlock);
    ++table.count;
  }
  return i;
}

}  // namespace

cudaError_t launch_sum_of_squares(const SquaredNumbers* tensors, int64_t count, double* partial_sums, double* sum,
                                  cudaStream_t stream) {
  SumOfSquaresTable table{};
  int64_t all_blocks = 0;
  for (int64_t i = 0; i < count;) {
    int64_t blocks = 0;
    i = fill(table, tensors, i, count, blocks);
    if (blocks == 0) continue;
    table.partial_sums = partial_sums + all_blocks;
    const cudaError_t error = launch(sum_of_squares_kernel, shape_of(blocks, stream), table);
    if (error != cudaSuccess) return error;
    all_blocks += blocks;
  }
  return launch(add_partial_sums_kernel, shape_of(1, stream), partial_sums, all_blocks, sum);
}

}  // namespace satformer::ops::cuda
