// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>

#include <infty/core/erf.hpp>

#include "support/catch.hpp"
#include "support/ulps.hpp"

TEMPLATE_TEST_CASE("erf: 3 ulp over the whole range", "", float, double) {
  using T = TestType;
  CHECK(infty::tests::worst_everywhere<T>([](T x) { return infty::math::erf(x); },
                                          [](long double x) { return std::erf(x); }) <= 3);
}

TEMPLATE_TEST_CASE("erfc: 5 ulp over the whole range, tail and denormal results included", "",
                   float, double) {
  using T = TestType;
  CHECK(infty::tests::worst_everywhere<T>([](T x) { return infty::math::erfc(x); },
                                          [](long double x) { return std::erfc(x); }) <= 5);
}

TEMPLATE_TEST_CASE("erf and erfc: the values with names", "", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  const T infinity = Limits::infinity();
  CHECK(infty::math::erf(T(0)) == T(0));
  CHECK(std::signbit(infty::math::erf(T(-0.0))));
  CHECK(infty::math::erf(infinity) == T(1));
  CHECK(infty::math::erf(-infinity) == T(-1));
  CHECK(infty::math::erfc(T(0)) == T(1));
  CHECK(infty::math::erfc(infinity) == T(0));
  CHECK(infty::math::erfc(-infinity) == T(2));
  CHECK(infty::math::erfc(Limits::max()) == T(0));
  for (const T x : {T(0.3), T(1), T(3)}) CHECK(infty::math::erf(-x) == -infty::math::erf(x));
}
