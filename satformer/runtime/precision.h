#pragma once
// In which type a model computes. Parameters are float32 masters always; bfloat16 is autocast's choice per operator.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

namespace satformer {

// "float32", "bfloat16" or "auto": bfloat16 on a GPU and on CPUs with bfloat16 instructions, else float32. Error names
// `source` (a config's key, a flag) for another word, float16 among them. A bfloat16 that the CPU must emulate is
// warned about once.
c10::ScalarType select_dtype(std::string_view name, c10::Device device, std::string_view source);

// Autocast on this thread while the object lives; does nothing for float32. Casts of parameters are cached until the
// outermost guard ends, so a guard must not outlive a change of the parameters.
class AutocastGuard {
 public:
  AutocastGuard(c10::Device device, c10::ScalarType dtype);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool active_;
  bool was_enabled_ = false;
  c10::ScalarType previous_dtype_ = c10::ScalarType::Float;
};

}  // namespace satformer
