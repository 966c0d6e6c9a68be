#pragma once
// What the tests of CUDA kernels on the host share: registration, checks, inputs, comparison. docs/cuda_host.md shows
// a whole test. Include it before the kernels.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda_host/engine.h"

namespace cuda_host {

// --- tests and checks ------------------------------------------------------------------------------------------
// CUDA_HOST_TEST(name) { ... } runs in every order of the threads; CUDA_HOST_TEST_ONCE only in the default one, for
// tests that set cuda_host::options themselves.
enum class Repeat { kEveryOrder, kOnce };
bool register_test(const char* name, void (*body)(), Repeat repeat);

#define CUDA_HOST_REGISTER(name, repeat)                                                                \
  static void name();                                                                                   \
  [[maybe_unused]] static const bool name##_registered = cuda_host::register_test(#name, name, repeat); \
  static void name()
#define CUDA_HOST_TEST(name) CUDA_HOST_REGISTER(name, cuda_host::Repeat::kEveryOrder)
#define CUDA_HOST_TEST_ONCE(name) CUDA_HOST_REGISTER(name, cuda_host::Repeat::kOnce)

// Counts a failure and prints the first few of a test.
void report_failure(const char* file, int line, const std::string& text);

#define CHECK(condition, text)                                                                              \
  do {                                                                                                      \
    if (!(condition)) cuda_host::report_failure(__FILE__, __LINE__, std::string(#condition ": ") + (text)); \
  } while (0)

// --- numbers ---------------------------------------------------------------------------------------------------
inline double as_double(float x) { return x; }
inline double as_double(double x) { return x; }
inline double as_double(__nv_bfloat16 x) { return __bfloat162float(x); }
inline double as_double(__half x) { return __half2float(x); }

template <typename T>
T from_double(double x) {
  return static_cast<T>(static_cast<float>(x));
}

// Half a unit in the last place, relative; and the smallest number worth telling from 0.
template <typename T>
struct Rounding {
  static constexpr double kRelative = 0x1p-24, kTiny = 0x1p-126;
};
template <>
struct Rounding<double> {
  static constexpr double kRelative = 0x1p-53, kTiny = 0x1p-1022;
};
template <>
struct Rounding<__nv_bfloat16> {
  static constexpr double kRelative = 0x1p-8, kTiny = 0x1p-126;
};
template <>
struct Rounding<__half> {
  static constexpr double kRelative = 0x1p-11, kTiny = 0x1p-25;
};

// Standard normal numbers in T, the same for the same seed.
template <typename T>
std::vector<T> normal(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution;
  std::vector<T> numbers(n);
  for (T& x : numbers) x = from_double<T>(distribution(generator));
  return numbers;
}

// --- comparison ------------------------------------------------------------------------------------------------
// What an element must be: computed in float64 from the same (rounded) inputs, with the sum of the magnitudes of the
// terms that float32 arithmetic adds up on the way.
struct Expected {
  double value, magnitude;
  bool untouched = false;  // must hold what every buffer is filled with

  void add(double more, double its_magnitude) { value += more, magnitude += its_magnitude; }
  void add(double term) { add(term, std::fabs(term)); }
};
inline Expected untouched() { return {0, 0, true}; }

// |got - value| may be one rounding to T and `ulps` roundings of float32 arithmetic:
//   Rounding<T> * |value| + ulps * 2^-24 * magnitude + tiny
// Not a number where the expectation is one, and nowhere else.
template <typename T>
bool is_close(T got, const Expected& expected, double ulps) {
  if (expected.untouched) {
    T filled;
    std::memset(static_cast<void*>(&filled), 0xff, sizeof filled);
    return std::memcmp(&got, &filled, sizeof got) == 0;
  }
  const double x = as_double(got);
  if (std::isnan(expected.value)) return std::isnan(x);
  return std::fabs(x - expected.value) <=
         Rounding<T>::kRelative * std::fabs(expected.value) + ulps * 0x1p-24 * expected.magnitude + Rounding<T>::kTiny;
}

template <typename T>
void compare(const char* file, int line, const std::string& name, const T* got, const std::vector<Expected>& expected,
             double ulps) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (is_close(got[i], expected[i], ulps)) continue;
    report_failure(file, line,
                   name + "[" + std::to_string(i) + "] is " + std::to_string(as_double(got[i])) + ", expected " +
                       (expected[i].untouched ? "no write" : std::to_string(expected[i].value)));
    return;  // the first one of an array says enough
  }
}
// CHECK_CLOSE(name, pointer, expected, ulps)
#define CHECK_CLOSE(...) cuda_host::compare(__FILE__, __LINE__, __VA_ARGS__)

}  // namespace cuda_host
