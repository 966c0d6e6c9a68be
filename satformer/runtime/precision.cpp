#include "satformer/runtime/precision.h"

#include <ATen/autocast_mode.h>

#include <mutex>

#include "satformer/core/error.h"
#include "satformer/core/progress.h"

namespace satformer {
namespace {

bool cpu_has_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

void warn_emulated_bfloat16() {
  static std::once_flag once;
  std::call_once(once, [] { warn("this CPU has no bfloat16 instructions: bfloat16 will be slower than float32"); });
}

}  // namespace

c10::ScalarType select_dtype(std::string_view name, c10::Device device, std::string_view source) {
  const bool native = device.is_cuda() || cpu_has_bfloat16();
  if (name == "auto") return native ? c10::ScalarType::BFloat16 : c10::ScalarType::Float;
  if (name == "float32") return c10::ScalarType::Float;
  if (name == "bfloat16") {
    if (!native) warn_emulated_bfloat16();
    return c10::ScalarType::BFloat16;
  }
  require(name != "float16", "{} is \"float16\", which needs loss scaling; use bfloat16 or float32", source);
  fail("{} is \"{}\", expected auto, float32 or bfloat16", source, name);
}

AutocastGuard::AutocastGuard(c10::Device device, c10::ScalarType dtype)
    : device_(device.type()), active_(dtype != c10::ScalarType::Float) {
  if (!active_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  previous_dtype_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, dtype);
  at::autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (!active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, previous_dtype_);
}

}  // namespace satformer
