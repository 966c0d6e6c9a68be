// satformer_microbench [--threads N] [Google Benchmark's flags]: N threads for ATen's operators, one without it.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  int threads = 1;
  if (argc > 2 && std::strcmp(argv[1], "--threads") == 0) {
    threads = std::clamp(static_cast<int>(std::strtol(argv[2], nullptr, 10)), 0, 4096);  // 0: no number
    argv[2] = argv[0];
    argc -= 2;
    argv += 2;
  }
  benchmark::Initialize(&argc, argv);
  if (threads < 1 || benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  at::set_num_threads(threads);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
