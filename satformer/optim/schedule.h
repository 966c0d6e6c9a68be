#pragma once
// Learning-rate schedules: pure functions of the step, so that a resumed run needs no state.
#include <cstdint>
#include <string>
#include <string_view>

namespace satformer::optim {

enum class Decay { cosine, linear, constant, wsd };

// "cosine", "linear", "constant" or "wsd"; Error names `source` and the choices.
Decay parse_decay(std::string_view name, std::string_view source);

struct Schedule {
  double peak = 3e-4;
  double minimum = 3e-5;
  std::int64_t warmup_steps = 0;
  std::int64_t max_steps = 0;
  Decay decay = Decay::cosine;
  double decay_fraction = 0.2;  // wsd: the last part of max_steps, in which the rate falls
};

// The rate of 0-based `step`:
//   step < warmup_steps:  peak (step + 1) / warmup_steps
//   step >= max_steps, or a warm-up that leaves nothing to decay:  minimum
//   else  minimum + c (peak - minimum),  p = (step - warmup_steps) / (max_steps - warmup_steps):
//     cosine c = (1 + cos(pi p)) / 2    linear c = 1 - p    constant c = 1
//     wsd (warm-up, stable, decay) c = 1 until D = round(decay_fraction max_steps) steps remain (or the warm-up ends,
//         if that is later), then linear: c = (max_steps - step) / D
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace satformer::optim
