#pragma once
// What the engine tells the address sanitizer, and nothing in builds without it.
#if defined(CUDA_HOST_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define ASAN_ONLY(...) __VA_ARGS__
#else
#define ASAN_ONLY(...)
#endif
