#include "satformer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "satformer/core/error.h"

namespace satformer::optim {
namespace {

// c of the header's formula, for warmup_steps <= step < max_steps.
double decay_coefficient(const Schedule& s, std::int64_t step) {
  const double progress =
      static_cast<double>(step - s.warmup_steps) / static_cast<double>(s.max_steps - s.warmup_steps);
  switch (s.decay) {
    case Decay::cosine:
      return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    case Decay::linear:
      return 1.0 - progress;
    case Decay::constant:
      return 1.0;
    case Decay::wsd: {
      const std::int64_t wanted = std::llround(s.decay_fraction * static_cast<double>(s.max_steps));
      const std::int64_t length = std::clamp<std::int64_t>(wanted, 1, s.max_steps - s.warmup_steps);
      return std::min(1.0, static_cast<double>(s.max_steps - step) / static_cast<double>(length));
    }
  }
  fail("learning_rate: unknown decay {}", static_cast<int>(s.decay));
}

}  // namespace

Decay parse_decay(std::string_view name, std::string_view source) {
  if (name == "cosine") return Decay::cosine;
  if (name == "linear") return Decay::linear;
  if (name == "constant") return Decay::constant;
  if (name == "wsd") return Decay::wsd;
  fail("{} is \"{}\", expected cosine, linear, constant or wsd", source, name);
}

double learning_rate(const Schedule& s, std::int64_t step) {
  if (step < s.warmup_steps) {
    return s.peak * static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
  }
  if (step >= s.max_steps) return s.minimum;
  return s.minimum + decay_coefficient(s, step) * (s.peak - s.minimum);
}

}  // namespace satformer::optim
