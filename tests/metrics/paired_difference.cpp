// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/metrics/paired_difference.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::paired_difference;
using infty::student_bound;
using infty::student_within;

TEST_CASE("student_bound: the quantiles of the tables") {
  struct Entry {
    double probability;
    Index degrees;
    double t;
  };
  const std::vector<Entry> table{
      {.8, 1, 3.0776835372},   {.8, 2, 1.8856180832},   {.8, 10, 1.3721836411},
      {.9, 1, 6.3137515147},   {.9, 3, 2.3533634348},   {.9, 30, 1.6972608866},
      {.95, 1, 12.7062047364}, {.95, 2, 4.3026527297},  {.95, 3, 3.1824463053},
      {.95, 4, 2.7764451052},  {.95, 5, 2.5705818356},  {.95, 10, 2.2281388520},
      {.95, 20, 2.0859634473}, {.95, 30, 2.0422724563}, {.95, 120, 1.9799304050},
      {.99, 1, 63.6567411629}, {.99, 2, 9.9248432009},  {.99, 5, 4.0321429836},
      {.99, 10, 3.1692726726}, {.99, 30, 2.7499956536}, {.999, 2, 31.5990545764},
      {.999, 4, 8.6103015814}, {.999, 10, 4.5868938587}};
  for (const auto& [probability, degrees, t] : table) {
    CAPTURE(probability, degrees);
    CHECK(std::fabs(student_bound(probability, degrees) - t) < 1e-6);
    CHECK(std::fabs(student_within(t, degrees) - probability) < 1e-9);
  }
  CHECK(student_bound(0, 7) == 0);
  // With one degree of freedom and with two there are closed forms, for any share that is left.
  for (const double alpha : {.3, 1e-2, 1e-4, 1e-6}) {
    const double one = std::tan(std::numbers::pi / 2 * (1 - alpha));
    const double p = 1 - alpha, two = p * std::sqrt(2 / (1 - p * p));
    CHECK(std::fabs(student_bound(p, 1) / one - 1) < 1e-8);
    CHECK(std::fabs(student_bound(p, 2) / two - 1) < 1e-8);
  }
}

TEST_CASE("paired_difference: an interval by hand") {
  // Differences 1, 2, 3: mean 2, standard deviation 1, that of the mean 1 / sqrt(3).
  const std::vector<double> a{5, 7, 4}, b{4, 5, 1};
  const auto one = paired_difference(a, b);
  CHECK(one.pairs == 3);
  CHECK(one.mean == 2);
  CHECK(std::fabs(one.high - one.mean - 4.3026527297 / std::sqrt(3)) < 1e-6);
  CHECK(std::fabs(one.mean - one.low - 4.3026527297 / std::sqrt(3)) < 1e-6);
  CHECK_FALSE(one.decided());
  CHECK(paired_difference(a, b, 1, .2).decided());
  CHECK(paired_difference(b, a, 1, .2).mean == -2);
  CHECK(paired_difference(b, a, 1, .2).decided());
  // Of ten comparisons, each is held to a tenth of the error.
  CHECK(paired_difference(a, b, 10, .5).high == paired_difference(a, b, 1, .05).high);
  CHECK_FALSE(paired_difference(a, b, 10, .2).decided());
}

TEST_CASE("paired_difference: fewer than three pairs, or equal differences, give no verdict") {
  const std::vector<double> two{9, 10}, none{1, 2.5}, three{9, 10, 11}, other{1, 2, 3};
  const auto few = paired_difference(two, none);
  CHECK(few.mean == 7.75);
  CHECK(std::isinf(few.low));
  CHECK(std::isinf(few.high));
  CHECK_FALSE(few.decided());
  CHECK_FALSE(paired_difference(three, other).decided());
  // Nor do those whose sum is rounded.
  for (std::size_t n = 3; n < 20; ++n)
    for (const double all : {.1, .3, 1e-300, 1e300}) {
      const auto equal = paired_difference(std::vector(n, all), std::vector(n, 0.));
      CHECK(equal.mean == all);
      CHECK(equal.low == all);
      CHECK_FALSE(equal.decided());
    }
}

TEST_CASE("paired_difference: equal memories are told apart no more often than it says") {
  // Six memories with three seeds each. A seed moves all of them, as the same text and weights do.
  constexpr int draws = 20000, memories = 6, seeds = 3;
  infty::Random random(20);
  const auto normal = [&] {
    const double u = 1 - random.uniform(), v = random.uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  };
  int families = 0, single = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<std::vector<double>> measured(memories);
    for (int seed = 0; seed < seeds; ++seed) {
      const double shared = 2 * normal();
      for (auto& of_memory : measured) of_memory.push_back(shared + normal());
    }
    bool any = false;
    for (std::size_t reference : {0U, 1U})
      for (std::size_t memory = reference + 1; memory < memories; ++memory)
        any = any || paired_difference(measured[memory], measured[reference], 9).decided();
    families += any ? 1 : 0;
    single += paired_difference(measured[1], measured[0]).decided() ? 1 : 0;
  }
  const double noise = 3 * std::sqrt(.05 * .95 / draws);
  CHECK(families / double(draws) <= .05 + noise);
  CHECK(families / double(draws) >= .02);  // nor does the correction take everything away
  CHECK(std::fabs(single / double(draws) - .05) <= noise);
}

TEST_CASE("paired_difference: what cannot be is refused") {
  const std::vector<double> a{1, 2, 3}, b{1, 2}, nothing,
      bad{1, std::numeric_limits<double>::quiet_NaN(), 3};
  CHECK_THROWS_AS(paired_difference(a, b), infty::ValueError);
  CHECK_THROWS_AS(paired_difference(nothing, nothing), infty::ValueError);
  CHECK_THROWS_AS(paired_difference(a, bad), infty::NonFiniteError);
  CHECK_THROWS_AS(paired_difference(a, a, 0), infty::ValueError);
  CHECK_THROWS_AS(paired_difference(a, a, 1, 0), infty::ValueError);
  for (const auto& [comparisons, rate] : {std::pair{Index{1}, 1e-17}, {Index{100}, 1e-11}})
    CHECK_THROWS_WITH(paired_difference(a, a, comparisons, rate),
                      Catch::Contains("[paired_difference] error_rate is "));
  CHECK_NOTHROW(paired_difference(a, a, 1, 1e-12));
  CHECK_THROWS_AS(student_bound(1, 3), infty::ValueError);
  CHECK_THROWS_AS(student_bound(.5, 0), infty::ValueError);
  CHECK_THROWS_AS(student_within(-1, 3), infty::ValueError);
}
