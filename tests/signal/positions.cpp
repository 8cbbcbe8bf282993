// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <vector>

#include <infty/signal/positions.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::first_positions;
using infty::next_positions;

namespace {

void check_equal(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == Approx(expected[i]).epsilon(1e-15).margin(1e-15));
}

}  // namespace

TEST_CASE("first_positions: midpoints of cells, half a signal of zeros at either end") {
  const auto p = first_positions(4);
  check_equal(p.before, {-0.375, -0.125});
  check_equal(p.inside, {0.125, 0.375, 0.625, 0.875});
  check_equal(p.after, {1.125, 1.375});
}

TEST_CASE("first_positions: an odd length has the odd zero behind it") {
  const auto p = first_positions(3);
  check_equal(p.before, {-1.0 / 3});
  check_equal(p.inside, {0, 1.0 / 3, 2.0 / 3});
  check_equal(p.after, {1, 4.0 / 3});
}

TEST_CASE("first_positions: an odd length at midpoints has as many zeros on either side") {
  const auto p = first_positions(3, true);
  check_equal(p.before, {-1.0 / 6});
  check_equal(p.inside, {1.0 / 6, 0.5, 5.0 / 6});
  check_equal(p.after, {7.0 / 6});
  check_equal(first_positions(4, true).before, first_positions(4).before);
  check_equal(first_positions(4, true).after, first_positions(4).after);
  check_equal(first_positions(1, true).inside, {0.5});
}

TEST_CASE("first_positions: one vector") {
  const auto p = first_positions(1);
  CHECK(p.before.empty());
  check_equal(p.inside, {0});
  check_equal(p.after, {1});
}

TEST_CASE("next_positions: the past in [0, tau], the new vectors behind it") {
  const auto p = next_positions(2, 3, 0.75);
  check_equal(p.inside, {0.25, 0.5, 0.75, 0.875, 1});
  // Ten points from -1/2 + 1/7 to 3/2 - 1/7.
  const double begin = -0.5 + 1.0 / 7, step = (2 - 2.0 / 7) / 9;
  check_equal(p.before, {begin, begin + step});
  check_equal(p.after, {begin + 8 * step, begin + 9 * step});
}

TEST_CASE("next_positions: rises, ends at 1, and zeros stay outside, for any length") {
  for (infty::Index length = 1; length < 40; ++length)
    for (infty::Index samples = 1; samples < 40; samples += 3) {
      const auto p = next_positions(length, samples, 0.6);
      REQUIRE(static_cast<infty::Index>(p.inside.size()) == length + samples);
      CHECK(p.inside.back() == Approx(1).epsilon(1e-15));
      CHECK(p.inside[static_cast<std::size_t>(samples - 1)] == Approx(0.6).epsilon(1e-15));
      CHECK(std::is_sorted(p.inside.begin(), p.inside.end()));
      for (const double t : p.before) CHECK(t < 0);
      for (const double t : p.after) CHECK(t > 1);
    }
}

TEST_CASE("positions: refuse what is out of range") {
  CHECK_THROWS_WITH(first_positions(0), Contains("[first_positions] length is 0"));
  CHECK_THROWS_WITH(next_positions(-1, 4, 0.5), Contains("[next_positions] length is -1"));
  CHECK_THROWS_WITH(next_positions(4, 0, 0.5), Contains("samples is 0"));
  for (const infty::Index huge :
       {infty::Index{1} << 62, std::numeric_limits<infty::Index>::max()}) {
    CHECK_THROWS_WITH(first_positions(huge), Contains("[first_positions] length is "));
    CHECK_THROWS_WITH(next_positions(huge, 4, .5), Contains("[next_positions] length is "));
    CHECK_THROWS_WITH(infty::held_points(1, huge, .01), Contains("[held_points] samples is "));
    CHECK_THROWS_WITH(next_positions(4, huge, .5), Contains("[next_positions] samples is "));
  }
  for (const double tau : {0.0, 1.0, -1.0, 2.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_WITH(next_positions(4, 4, tau), Contains("it must be in (0, 1)"));
}
