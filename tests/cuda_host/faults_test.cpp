// The harness must notice each error of faulty_kernels.cuh.
#include "tests/cuda_host/faulty_kernels.cuh"
#include "tests/cuda_host/testing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace faulty {
CUDA_HOST_DYNAMIC_SHARED(float, faulty_smem);
}
using namespace faulty;
using cuda_host::Buffer;

// Runs f in a child; returns what it printed or threw, or "" if it ended well.
static std::string outcome(const std::function<void()>& f) {
  int fd[2];
  if (pipe(fd)) abort();
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(fd[1], 2);
    close(fd[0]);
    close(fd[1]);
    try {
      f();
    } catch (const std::exception& e) {
      fprintf(stderr, "%s\n", e.what());
      _exit(3);
    }
    _exit(0);
  }
  close(fd[1]);
  std::string s;
  char b[4096];
  for (ssize_t n; (n = read(fd[0], b, sizeof b)) > 0;) s.append(b, n);
  close(fd[0]);
  int st = 0;
  waitpid(pid, &st, 0);
  if (WIFEXITED(st) && WEXITSTATUS(st) == 0) return "";
  return s.empty() ? "died without a message" : s;
}

static void expect(const char* name, const char* text, const std::function<void()>& f) {
  std::string s = outcome(f);
  CHECK(s.find(text) != std::string::npos, std::string(name) + ": got '" + s + "', want '" + text + "'");
  std::string shown;
  for (size_t at = 0; at < s.size() && shown.size() < 700;) {  // the lines that say something
    size_t e = std::min(s.find('\n', at), s.size());
    std::string l = s.substr(at, e - at);
    for (const char* key : {"cuda_host", "ERROR", "runtime error", "WRITE of", "READ of", " first ", " returned"})
      if (l.find(key) != std::string::npos) {
        shown += "    " + l + "\n";
        break;
      }
    at = e + 1;
  }
  printf("%s:\n%s", name, shown.c_str());
}

// In how many of n seeds does the kernel give a wrong result?
[[maybe_unused]] static int wrong(int n, void (*k)(float*, const float*), int threads,
                                  const std::function<float(int)>& want) {
  int bad = 0;
  std::vector<float> in(threads);
  for (int i = 0; i < threads; i++) in[i] = (float)i;
  for (int s = 0; s < n; s++) {
    cuda_host::options.seed = s;
    Buffer<float> a(in), out(threads);
    cuda_host::launch(1, threads, 0, k, out, a);
    for (int i = 0; i < threads; i++)
      if (!(out[i] == want(i))) {
        bad++;
        break;
      }
  }
  return bad;
}

CUDA_HOST_TEST_ONCE(faults) {
#ifndef CUDA_HOST_RACECHECK
  auto check = [](const char* name, int bad, int good) {
    printf("%s: wrong in %d of 20 seeds; corrected: %d\n", name, bad, good);
    CHECK(bad > 0 && good == 0, name);
  };
  auto rev = [](int i) { return 255.f - i; };
  check("missing __syncthreads", wrong(20, missing_sync<false>, 256, rev), wrong(20, missing_sync<true>, 256, rev));
  auto pair = [](int i) { return (float)(i + (i ^ 1)); };
  check("missing second __syncthreads", wrong(20, missing_second_sync<false>, 256, pair),
        wrong(20, missing_second_sync<true>, 256, pair));
  auto swap = [](int i) { return (float)(i ^ 1); };
  check("missing __syncwarp", wrong(20, missing_syncwarp<false>, 32, swap),
        wrong(20, missing_syncwarp<true>, 32, swap));
#else
  for (bool fixed : {false, true}) {
    auto one = [&](const char* name, void (*k)(float*, const float*), int threads) {
      auto f = [&] {
        Buffer<float> a(std::vector<float>(threads, 1.f)), out(threads);
        cuda_host::launch(1, threads, 0, k, out, a);
      };
      if (fixed) {
        std::string s = outcome(f);
        CHECK(s.empty(), std::string(name) + " corrected: " + s);
      } else
        expect(name, "race", f);
    };
    one("race: missing __syncthreads", fixed ? missing_sync<true> : missing_sync<false>, 256);
    one("race: missing second __syncthreads", fixed ? missing_second_sync<true> : missing_second_sync<false>, 256);
    one("race: missing __syncwarp", fixed ? missing_syncwarp<true> : missing_syncwarp<false>, 32);
  }
#endif
  {
    Buffer<float> out(64);
    cuda_host::launch(1, 64, 0, uninitialised_shared, out);
    int nan = 0;
    for (int i = 0; i < 64; i++) nan += std::isnan(out[i]);
    CHECK(nan == 1, "NaN from one uninitialised element");
    printf("uninitialised shared read: %d NaN\n", nan);
  }
#if defined(__SANITIZE_ADDRESS__)
  const char *w = "use-after-poison", *far = "SEGV", *dyn = "use-after-poison";
#else
  const char *w = "wrote byte 404 of 'out' which has 404 bytes", *far = "byte 400 of 'out' which has 400 bytes",
             *dyn = "wrote past its 256 bytes of dynamic";
#endif
  expect("write past the end, 101 floats", w, [] {
    Buffer<float> out(101, "out");
    cuda_host::launch(1, 64, 0, write_past_end, out, 101);
  });
  expect("write past the end, 100 floats", far, [] {
    Buffer<float> out(100, "out");
    cuda_host::launch(1, 64, 0, write_past_end, out, 100);
  });
  expect("read past the end, 100 floats", "thread (35,0,0)", [] {
    Buffer<float> in(100, "in"), out(100, "out");
    cuda_host::launch(1, 64, 0, read_past_end, out, in, 100);
  });
  expect("dynamic shared past the end", dyn, [] {
    Buffer<float> out(64, "out");
    cuda_host::launch(1, 64, 256, dynamic_shared_past_end, out);
  });
#if defined(__SANITIZE_ADDRESS__)  // the sanitizer build has UBSan too
  expect("shared past the end", "out of bounds", [] {
    Buffer<float> out(64, "out");
    cuda_host::launch(1, 64, 0, shared_past_end, out, 1);
  });
  expect("misaligned vector load", "misaligned address", [] {
    Buffer<float> in(257, "in"), out(256, "out");
    cuda_host::launch(1, 64, 0, misaligned_vector, out, in);
  });
#endif
  auto on64 = [](void (*k)(float*)) {
    return [k] {
      Buffer<float> out(64, "out");
      cuda_host::launch(1, 64, 0, k, out);
    };
  };
  expect("barrier in one branch", "24 returned, first thread", on64(barrier_in_branch));
  expect("barrier in both branches", "divergent barrier", on64(barrier_in_both_branches));
  expect("barrier against shuffle", "at __shfl_xor_sync", on64(barrier_against_shuffle));
  expect("shuffle, lane returned", "returned or absent 00000080", on64(shuffle_lane_missing));
  expect("shuffle outside its mask", "reads lane 20", on64(shuffle_outside_mask));
  {  // the process goes on after an error
    bool threw = false;
    Buffer<float> out(64);
    for (int k = 0; k < 3; k++) try {
        cuda_host::launch(1, 64, 0, barrier_in_branch, out);
      } catch (const cuda_host::Error&) {
        threw = true;
      }
    cuda_host::launch(1, 64, 0, barriers, out, 10);
    CHECK(threw && out[63] == 1.f, "launch after an error");
    cuda_host::options.exited_ok = true;
    cuda_host::launch(1, 64, 0, barrier_in_branch, out);
    cuda_host::launch(1, 64, 0, shuffle_lane_missing, out);
    cuda_host::options.exited_ok = false;
  }
}
