#include "satformer/optim/schedule.h"

#include "satformer/core/error.h"
#include "tests/catch.h"

namespace {

using namespace satformer::optim;
using Catch::Matchers::Contains;

constexpr double kPeak = 2e-3, kMinimum = 2e-4;

Schedule schedule(Decay decay) { return {kPeak, kMinimum, 10, 110, decay, 0.2}; }

}  // namespace

TEST_CASE("schedules share warm-up and end", "[optim]") {
  for (const Decay decay : {Decay::cosine, Decay::linear, Decay::constant, Decay::wsd}) {
    const Schedule s = schedule(decay);
    CHECK(learning_rate(s, 0) == Approx(kPeak / 10));
    CHECK(learning_rate(s, 4) == Approx(kPeak / 2));
    CHECK(learning_rate(s, 9) == kPeak);
    CHECK(learning_rate(s, 10) == Approx(kPeak));
    CHECK(learning_rate(s, 110) == kMinimum);
    CHECK(learning_rate(s, 100000) == kMinimum);
    for (std::int64_t step = 11; step < 110; ++step) {
      CHECK(learning_rate(s, step) <= learning_rate(s, step - 1));
      CHECK(learning_rate(s, step) >= kMinimum);
    }
  }
}

TEST_CASE("schedules in the middle of the decay", "[optim]") {
  const double middle = (kPeak + kMinimum) / 2;
  CHECK(learning_rate(schedule(Decay::cosine), 60) == Approx(middle));
  CHECK(learning_rate(schedule(Decay::cosine), 35) == Approx(kMinimum + 0.8535533905932737 * (kPeak - kMinimum)));
  CHECK(learning_rate(schedule(Decay::linear), 60) == Approx(middle));
  CHECK(learning_rate(schedule(Decay::constant), 109) == Approx(kPeak));
  // The last 22 of 110 steps fall.
  CHECK(learning_rate(schedule(Decay::wsd), 88) == Approx(kPeak));
  CHECK(learning_rate(schedule(Decay::wsd), 99) == Approx(middle));
  CHECK(learning_rate(schedule(Decay::wsd), 109) == Approx(kMinimum + (kPeak - kMinimum) / 22));
}

TEST_CASE("schedules at their edges", "[optim]") {
  Schedule s = schedule(Decay::cosine);
  s.warmup_steps = 0;
  CHECK(learning_rate(s, 0) == Approx(kPeak));
  s.warmup_steps = 200;  // longer than the run
  CHECK(learning_rate(s, 109) == Approx(kPeak * 110 / 200));
  s = schedule(Decay::wsd);
  s.decay_fraction = 1.0;  // more than what the warm-up leaves
  CHECK(learning_rate(s, 10) == Approx(kPeak));
  CHECK(learning_rate(s, 60) == Approx((kPeak + kMinimum) / 2));
  s.decay_fraction = 0.0;
  CHECK(learning_rate(s, 109) == Approx(kPeak));
  CHECK_THROWS_WITH(parse_decay("cosin", "a.json: training.lr_decay_style"),
                    Contains("a.json: training.lr_decay_style is \"cosin\"") && Contains("wsd"));
}
