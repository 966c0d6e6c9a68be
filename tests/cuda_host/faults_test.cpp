// The harness must notice each fault of faulty_kernels.cuh, and nothing in the corrected forms.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/cuda_host/testing.h"

#include "tests/cuda_host/faulty_kernels.cuh"

namespace satformer::faulty {
CUDA_HOST_DYNAMIC_SHARED(float, dynamic_values);

namespace {

using cuda_host::Buffer;
using Kernel = void (*)(float*, const float*);

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// What a child process that runs `body` says when it fails; empty when it ends well.
std::string outcome(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(3);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char bytes[4096];
  for (ssize_t n = 0; (n = read(ends[0], bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return text.empty() ? "died without a word" : text;
}

void expect_text(const std::string& text, const std::function<void()>& body) {
  const std::string got = outcome(body);
  CHECK(got.find(text) != std::string::npos, "expected '" + text + "', got '" + got + "'");
}

void run_on_64(void (*kernel)(float*)) {
  Buffer<float> out(64, "out");
  cuda_host::launch(1, 64, 0, kernel, out);
}

struct RacePair {
  const char* name;
  Kernel wrong, fixed;
  unsigned blocks, threads;
  float (*expected)(int);
};
constexpr RacePair kRaces[] = {
    {"missing barrier", missing_barrier<false>, missing_barrier<true>, 1, 256, [](int i) { return 255.f - i; }},
    {"missing second barrier", missing_second_barrier<false>, missing_second_barrier<true>, 1, 256,
     [](int i) { return static_cast<float>(i + (i ^ 1)); }},
    {"missing syncwarp", missing_syncwarp<false>, missing_syncwarp<true>, 1, 32,
     [](int i) { return static_cast<float>(i ^ 1); }},
};

std::vector<float> counting(size_t n) {
  std::vector<float> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(i);
  return numbers;
}

// In how many of 20 seeds the kernel gives a wrong result.
[[maybe_unused]] int wrong_results(const RacePair& pair, Kernel kernel) {
  int wrong = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    cuda_host::options.seed = seed;
    Buffer<float> in(counting(pair.threads), "in"), out(pair.threads, "out");
    cuda_host::launch(pair.blocks, pair.threads, 0, kernel, out, in);
    bool right = true;
    for (unsigned i = 0; i < pair.threads; ++i) right = right && out[i] == pair.expected(static_cast<int>(i));
    wrong += !right;
  }
  return wrong;
}

}  // namespace

#if defined(CUDA_HOST_RACECHECK)
CUDA_HOST_TEST_ONCE(races_are_found) {
  for (const RacePair& pair : kRaces) {
    const auto run = [&pair](Kernel kernel) {
      Buffer<float> in(counting(pair.threads), "in"), out(pair.threads, "out");
      cuda_host::launch(pair.blocks, pair.threads, 0, kernel, out, in);
    };
    expect_text("race on byte", [&] { run(pair.wrong); });
    expect_text("faulty_kernels.cuh", [&] { run(pair.wrong); });  // both lines are named
    CHECK(outcome([&] { run(pair.fixed); }).empty(), pair.name);
  }
}
CUDA_HOST_TEST_ONCE(races_between_blocks_are_found) {
  const auto run = [](Kernel kernel) {
    Buffer<float> in(counting(2), "in"), out(std::vector<float>{0.f}, "out");
    cuda_host::launch(2, 1, 0, kernel, out, in);
  };
  expect_text("of an earlier block", [&] { run(sum_without_atomic<false>); });
  CHECK(outcome([&] { run(sum_without_atomic<true>); }).empty(), "atomic");
}
#else
CUDA_HOST_TEST_ONCE(wrong_order_gives_wrong_results) {
  for (const RacePair& pair : kRaces) {
    CHECK(wrong_results(pair, pair.wrong) > 0, pair.name);
    CHECK(wrong_results(pair, pair.fixed) == 0, pair.name);
  }
}
#endif

CUDA_HOST_TEST_ONCE(accesses_outside_buffers) {
  const auto write_past = [](int n) {
    Buffer<float> out(static_cast<size_t>(n), "out");
    cuda_host::launch(1, 64, 0, write_past_end, out, n);
  };
  // 101 floats end four bytes before a multiple of 16: the canaries notice. 100 end at the guard page.
  expect_text(kSanitized ? "use-after-poison" : "wrote byte 404 of 'out' which has 404 bytes",
              [&] { write_past(101); });
  expect_text(kSanitized ? "SEGV" : "byte 400 of 'out' which has 400 bytes", [&] { write_past(100); });
  expect_text("thread (35,0,0)", [] {
    Buffer<float> in(100, "in"), out(100, "out");
    cuda_host::launch(1, 64, 0, read_past_end, out, in, 100);
  });
}

CUDA_HOST_TEST_ONCE(shared_memory) {
  expect_text(kSanitized ? "use-after-poison" : "wrote past its 256 bytes of dynamic", [] {
    Buffer<float> out(64, "out");
    cuda_host::launch(1, 64, 256, dynamic_shared_past_end, out);
  });
  if (kSanitized) {
    expect_text("out of bounds", [] {
      Buffer<float> out(64, "out");
      cuda_host::launch(1, 64, 0, shared_past_end, out, 1);
    });
  }
  Buffer<float> out(64, "out");
  cuda_host::launch(1, 64, 0, unwritten_shared, out);
  for (size_t i = 0; i < 64; ++i) CHECK(std::isnan(out[i]) == (i == 63), "only the last element was never written");
  const auto use_much = [](float* values) { cuda_host::launch(1, 64, 96 * 1024, dynamic_shared_past_end, values); };
  expect_text("98304 bytes of dynamic shared memory, allowed 49152", [&] { use_much(out); });
  const auto allow = [](int bytes) {
    return cudaFuncSetAttribute(dynamic_shared_past_end, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  CHECK(allow(228 * 1024) == cudaErrorInvalidValue, "more than a multiprocessor has");
  CHECK(allow(96 * 1024) == cudaSuccess, "");
  use_much(out);
}

CUDA_HOST_TEST_ONCE(misaligned_access) {
  if (!kSanitized) return;
  expect_text("misaligned address", [] {
    Buffer<float> in(257, "in"), out(256, "out");
    cuda_host::launch(1, 64, 0, misaligned_pack, out, in);
  });
}

CUDA_HOST_TEST_ONCE(threads_that_do_not_arrive) {
  expect_text("24 returned, first thread", [] { run_on_64(barrier_in_branch); });
  expect_text("divergent barrier", [] { run_on_64(barrier_in_both_branches); });
  expect_text("at __shfl_xor_sync", [] { run_on_64(barrier_against_shuffle); });
  expect_text("returned or absent 00000080", [] { run_on_64(shuffle_without_a_lane); });
  expect_text("reads lane 20", [] { run_on_64(shuffle_outside_its_mask); });
}

CUDA_HOST_TEST_ONCE(launches_that_no_gpu_takes) {
  Buffer<float> out(64, "out");
  const auto refused = [&](dim3 blocks, dim3 threads) {
    try {
      cuda_host::launch(blocks, threads, 0, correct, out);
    } catch (const cuda_host::Error&) {
      return true;
    }
    return false;
  };
  CHECK(refused(1, 1025), "threads");
  CHECK(refused(1, 0), "threads");
  CHECK(refused(dim3(1, 70000), 64), "blocks");
  CHECK(refused(0, 64), "blocks");
  CHECK(!refused(1, 64), "a good one");
}

CUDA_HOST_TEST(the_process_goes_on_after_an_error) {
  Buffer<float> out(64, "out");
  int thrown = 0;
  for (int k = 0; k < 3; ++k) {
    try {
      cuda_host::launch(1, 64, 0, barrier_in_branch, out);
    } catch (const cuda_host::Error&) {
      ++thrown;
    }
  }
  CHECK(thrown == 3, "errors");
  cuda_host::launch(1, 64, 0, correct, out);
  for (size_t i = 0; i < 64; ++i) CHECK(out[i] == static_cast<float>(i), "after ten exchanges everyone has its own");
}

}  // namespace satformer::faulty
