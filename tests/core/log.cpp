// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>

#include <infty/core/log.hpp>

#include "support/catch.hpp"
#include "support/ulps.hpp"

TEMPLATE_TEST_CASE("log: 1 ulp over the whole range", "", float, double) {
  using T = TestType;
  CHECK(infty::tests::worst_everywhere<T>([](T x) { return infty::math::log(x); },
                                          [](long double x) { return std::log(x); }) <= 1);
}

TEMPLATE_TEST_CASE("log1p: 3 ulp over the whole range", "", float, double) {
  using T = TestType;
  CHECK(infty::tests::worst_everywhere<T>([](T x) { return infty::math::log1p(x); },
                                          [](long double x) { return std::log1p(x); }) <= 3);
}

TEMPLATE_TEST_CASE("log and log1p: the values with names", "", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  CHECK(infty::math::log(T(1)) == T(0));
  CHECK(infty::math::log(T(0)) == -Limits::infinity());
  CHECK(infty::math::log(T(-0.0)) == -Limits::infinity());
  CHECK(infty::math::log(Limits::infinity()) == Limits::infinity());
  CHECK(std::isnan(infty::math::log(T(-1))));
  CHECK(std::isnan(infty::math::log(-Limits::infinity())));
  CHECK(infty::math::log1p(T(-1)) == -Limits::infinity());
  CHECK(infty::math::log1p(Limits::infinity()) == Limits::infinity());
  CHECK(infty::math::log1p(Limits::denorm_min()) == Limits::denorm_min());
  CHECK(std::signbit(infty::math::log1p(T(-0.0))));
  CHECK(std::isnan(infty::math::log1p(T(-2))));
}
