// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/contraction_rule.hpp>

#include "support/catch.hpp"

TEST_CASE("PowerContraction: vector i of w stands at (i / w)^p, whatever the writes") {
  for (const double power : {.5, 1., 2., 3.7}) {
    const infty::PowerContraction rule{power};
    for (const infty::Index length : {1, 7, 64}) {
      double place = 1;  // of the first ten vectors' end
      infty::Index written = 10;
      for (int write = 0; write < 500; ++write, written += length) place *= rule(written, length);
      const double exact = std::pow(10. / static_cast<double>(written), power);
      CHECK(std::fabs(place - exact) <= 1e-11 * exact);
    }
  }
}

TEST_CASE(
    "PowerContraction: the share is in (0, 1), however long and many, or the power is refused") {
  constexpr infty::Index most = (std::numeric_limits<infty::Index>::max)();
  for (const double power : {1e-12, 1., 1e12})
    for (const infty::Index written : {infty::Index{1}, most})
      for (const infty::Index added : {infty::Index{1}, most}) {
        const double tau = infty::PowerContraction{power}(written, added);
        CAPTURE(power, written, added, tau);
        CHECK((tau > 0 && tau < 1));
        const double share = infty::gridded_share("test", tau);
        CHECK((share > 0 && share < 1));
      }
  for (const double power : {0., -1., std::nan("")})
    CHECK_THROWS_WITH(infty::PowerContraction{power}(1, 1),
                      Catch::Matchers::Contains("[PowerContraction] power is"));
}

TEST_CASE("gridded_share: any share is one, and off by a fortieth where double tells it from 1") {
  for (double rest = 1e-16; rest < 1; rest *= 1.3)
    for (const double tau : {1 - rest, rest, rest * 1e-290}) {
      if (tau >= 1) continue;
      const double share = infty::gridded_share("test", tau);
      CAPTURE(rest, tau, share);
      CHECK((share > 0 && share < 1));
      if (1 - tau < 1e-13 || tau < 1e-300) continue;
      CHECK(std::fabs(std::log(share) / std::log(tau) - 1) < .026);
    }
  for (const double tau : {1 - 0x1p-53, 0x1p-53, 5e-324})
    CHECK((infty::gridded_share("test", tau) > 0 && infty::gridded_share("test", tau) < 1));
}

TEST_CASE("gridded_share: any write's logarithm is off by a fortieth, from one to a billion") {
  infty::Random random(3);
  const auto any = [&] {  // each magnitude as likely as the others
    return static_cast<infty::Index>(std::pow(1e9, random.uniform()));
  };
  double worst = 0;
  for (int i = 0; i < 20'000; ++i) {
    const infty::PowerContraction rule{.25 + 4 * random.uniform()};
    const infty::Index written = any(), added = any();
    const double tau = rule(written, added);
    if (tau < 1e-300) continue;
    const double exact = std::log(tau), gridded = std::log(infty::gridded_share("test", tau));
    worst = std::fmax(worst, std::fabs(gridded / exact - 1));
  }
  CHECK(worst < .025);
  CHECK(worst > .02);  // as far as that it does go
}

TEST_CASE("gridded_share: any write's logarithm is off by a fortieth, for all up to a billion") {
  // All up to 60, and then each a twentieth more than the one before, by which a share moves less
  // than a step of the grid.
  std::vector<infty::Index> numbers;
  for (double n = 1; n <= 1e9; n = (std::max)(n + 1, 1.05 * n))
    numbers.push_back(static_cast<infty::Index>(n));
  REQUIRE(numbers.size() > 300);
  for (const double power : {.25, 1., 3.}) {
    const infty::PowerContraction rule{power};
    double worst = 0;
    for (const infty::Index written : numbers)
      for (const infty::Index added : numbers) {
        const double tau = rule(written, added);
        if (tau < 1e-300) continue;
        const double gridded = std::log(infty::gridded_share("test", tau));
        worst = std::fmax(worst, std::fabs(gridded / std::log(tau) - 1));
      }
    CAPTURE(power, worst);
    CHECK(worst < .025);
  }
}

TEST_CASE(
    "gridded_share: a vector stands within a fortieth of its place's logarithm, whenever it came") {
  infty::Random random(5);
  for (const double power : {.5, 1., 2.})
    for (int stream = 0; stream < 50; ++stream) {
      const infty::PowerContraction rule{power};
      // The vector is the last of those that stand; then come writes of any length, at first short.
      const auto any = [&](double most) {
        return static_cast<infty::Index>(std::pow(most, random.uniform()));
      };
      const infty::Index before = any(1e8);
      infty::Index written = before;
      double place = 0;  // its logarithm
      while (written < 1'000'000'000 && written < 1000 * before) {
        const infty::Index length = 1 + written / 50 + any(static_cast<double>(written));
        place += std::log(infty::gridded_share("test", rule(written, length)));
        written += length;
        const double exact =
            power * std::log(static_cast<double>(before) / static_cast<double>(written));
        if (place < 1.025 * exact || place > exact / 1.025) {
          CAPTURE(power, before, written, place, exact);
          FAIL("it does not stand between t^1.025 and t^(1 / 1.025)");
        }
      }
      CHECK(place < 0);
    }
}

TEST_CASE("gridded_share: a place is off by a fortieth of its logarithm, from one to a billion") {
  for (const double power : {.5, 1., 2.}) {
    const infty::PowerContraction rule{power};
    double exact = 0, gridded = 0;  // logarithms
    infty::Index written = 16, shares = 0;
    double before = 0;
    while (written < 1'000'000'000) {
      // Writes of all lengths, as long as a hundred-thousandth of the past at least.
      const infty::Index length = 16 + written / 100'000;
      const double tau = rule(written, length), share = infty::gridded_share("test", tau);
      CHECK((share > 0 && share < 1));
      exact += std::log(tau);
      gridded += std::log(share);
      shares += share == before ? 0 : 1;
      before = share;
      written += length;
      if (std::fabs(gridded - exact) > .025 * std::fabs(exact)) {
        CAPTURE(power, written, exact, gridded);
        FAIL("beyond a fortieth");
      }
    }
    CHECK(shares < 500);
  }
  CHECK_THROWS_WITH(infty::gridded_share("test", 1.),
                    Catch::Matchers::Contains("[test] the contraction's tau is 1"));
}
