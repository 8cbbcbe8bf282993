// SPDX-License-Identifier: MIT
#include <limits>

#include <infty/train/schedule.hpp>

#include "support/catch.hpp"

using Catch::Approx;
using infty::ConstantSchedule;
using infty::CosineSchedule;
using infty::Index;
using infty::LinearSchedule;

namespace {

constexpr auto lambda = [](Index) { return 1e-3; };

}  // namespace

static_assert(infty::Schedule<decltype(lambda)>);
static_assert(!infty::Schedule<double>);

TEST_CASE("ConstantSchedule: warm-up by hand, then the peak for ever") {
  const ConstantSchedule rate{.peak = 0.4, .warmup_steps = 4};
  CHECK(rate(0) == Approx(0.1));
  CHECK(rate(1) == Approx(0.2));
  CHECK(rate(3) == 0.4);
  CHECK(rate(4) == 0.4);
  CHECK(rate(1'000'000'000) == 0.4);
  CHECK(ConstantSchedule{.peak = 0.4}(0) == 0.4);
}

TEST_CASE("CosineSchedule: by hand") {
  const CosineSchedule rate{.peak = 2, .warmup_steps = 2, .total_steps = 10, .floor = 1};
  CHECK(rate(0) == Approx(1));
  CHECK(rate(1) == Approx(2));
  CHECK(rate(2) == Approx(2));
  CHECK(rate(4) == Approx(1.5 + 0.5 * 0.70710678118654752));
  CHECK(rate(6) == Approx(1.5));
  CHECK(rate(8) == Approx(1.5 - 0.5 * 0.70710678118654752));
  CHECK(rate(10) == Approx(1));
  CHECK(rate(1000) == Approx(1));
}

TEST_CASE("LinearSchedule: by hand") {
  const LinearSchedule rate{.peak = 2, .warmup_steps = 2, .total_steps = 10, .floor = 1};
  CHECK(rate(0) == Approx(1));
  CHECK(rate(1) == Approx(2));
  CHECK(rate(2) == Approx(2));
  CHECK(rate(4) == Approx(1.75));
  CHECK(rate(10) == Approx(1));
  CHECK(rate(11) == Approx(1));
}

TEMPLATE_TEST_CASE("schedule: rises to its peak, falls to its floor, and never leaves the two", "",
                   CosineSchedule, LinearSchedule) {
  const TestType rate{.peak = 1, .warmup_steps = 17, .total_steps = 100, .floor = 0.1};
  for (Index step = 1; step < 120; ++step) {
    CAPTURE(step);
    if (step < 17)
      CHECK(rate(step) > rate(step - 1));
    else
      CHECK(rate(step) <= rate(step - 1));
    CHECK(rate(step) <= 1);
    if (step >= 17) CHECK(rate(step) >= 0.1);
  }
  for (int i = 1; i < 300; ++i) {
    const double peak = i / 7., floor = peak * (i % 11) / 11;
    const TestType ends{.peak = peak, .warmup_steps = 0, .total_steps = 2 + i, .floor = floor};
    CAPTURE(i);
    CHECK(ends(2 + i) == floor);
    CHECK(ends(1 + i) >= floor);
    CHECK(ends(1'000'000) == floor);
  }
}

TEST_CASE("schedule: settings out of range are refused by name") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(ConstantSchedule{}(-1), "[ConstantSchedule] step is -1: it must be at least 0");
  CHECK_THROWS_AS(ConstantSchedule{.peak = nan}(0), infty::ValueError);
  CHECK_THROWS_AS(ConstantSchedule{.warmup_steps = -1}(0), infty::ValueError);
  CHECK_THROWS_WITH((CosineSchedule{.warmup_steps = 5, .total_steps = 5}(0)),
                    "[CosineSchedule] total_steps is 5: it must be above warmup_steps = 5");
  CHECK_THROWS_WITH((LinearSchedule{.peak = 1, .floor = 2}(0)),
                    "[LinearSchedule] floor is 2: it must lie in [0, peak = 1]");
  CHECK_THROWS_AS((LinearSchedule{.floor = -1}(0)), infty::ValueError);
}
