// SPDX-License-Identifier: MIT
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include <infty/train/progress.hpp>

#include "support/catch.hpp"

using infty::format_duration;
using infty::Progress;
using std::chrono::seconds;

TEST_CASE("format_duration: as people read it") {
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(8.4) == "8s");
  CHECK(format_duration(59.6) == "1:00");
  CHECK(format_duration(98) == "1:38");
  CHECK(format_duration(3599) == "59:59");
  CHECK(format_duration(3600) == "1:00:00");
  CHECK(format_duration(7385) == "2:03:05");
  CHECK(format_duration(-1) == "?");
  CHECK(format_duration(std::numeric_limits<double>::infinity()) == "?");
  CHECK(format_duration(std::nan("")) == "?");
}

TEST_CASE("Progress: rate and time left by hand") {
  const Progress::Clock::time_point start{};
  Progress progress(1500, 0, start);
  CHECK(progress.rate() == 0);
  CHECK(std::isinf(progress.seconds_left()));
  progress.update(300, start + seconds(60));
  CHECK(progress.seconds() == 60);
  CHECK(progress.rate() == 5);
  CHECK(progress.seconds_left() == 240);
  progress.update(1500, start + seconds(200));
  CHECK(progress.seconds_left() == 0);
}

TEST_CASE("Progress: a resumed run counts its own steps only") {
  const Progress::Clock::time_point start{};
  Progress progress(1000, 900, start);
  progress.update(920, start + seconds(10));
  CHECK(progress.rate() == 2);
  CHECK(progress.seconds_left() == 40);
  CHECK(progress.done() == 920);
  CHECK(progress.total() == 1000);
}

TEST_CASE("Progress: one line") {
  const Progress::Clock::time_point start{};
  Progress progress(1500, 0, start);
  CHECK(progress.line() == "step 0/1500  0 steps/s  ? left");
  progress.update(300, start + seconds(24));
  CHECK(progress.line({{"loss", 1.23456}, {"accuracy", 0.5}}) ==
        "step 300/1500  loss 1.235  accuracy 0.5  12.5 steps/s  1:36 left");
  CHECK(progress.line({}, "token") == "token 300/1500  12.5 tokens/s  1:36 left");
}

TEST_CASE("Progress: steps that cannot be are refused") {
  CHECK_THROWS_WITH(Progress(10, 11),
                    "[Progress] first is 11, total is 10: 0 <= first <= total must hold");
  CHECK_THROWS_AS(Progress(-1), infty::ValueError);
  Progress progress(10, 5);
  CHECK_THROWS_WITH(progress.update(11), "[Progress::update] done is 11: it must lie in [5, 10]");
  CHECK_THROWS_AS(progress.update(4), infty::ValueError);
}
