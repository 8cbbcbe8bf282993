// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>

#include <infty/core/tanh.hpp>

#include "support/catch.hpp"
#include "support/ulps.hpp"

TEMPLATE_TEST_CASE("tanh: 3 ulp over the whole range, denormals included", "", float, double) {
  using T = TestType;
  CHECK(infty::tests::worst_everywhere<T>([](T x) { return infty::math::tanh(x); },
                                          [](long double x) { return std::tanh(x); }) <= 3);
}

TEMPLATE_TEST_CASE("tanh: the values with names", "", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  CHECK(infty::math::tanh(T(0)) == T(0));
  CHECK(std::signbit(infty::math::tanh(T(-0.0))));
  CHECK(infty::math::tanh(Limits::infinity()) == T(1));
  CHECK(infty::math::tanh(-Limits::infinity()) == T(-1));
  CHECK(infty::math::tanh(Limits::max()) == T(1));
  CHECK(infty::math::tanh(Limits::denorm_min()) == Limits::denorm_min());
  CHECK(std::isnan(infty::math::tanh(Limits::quiet_NaN())));
  for (const T x : {T(0.3), T(1), T(3)}) CHECK(infty::math::tanh(-x) == -infty::math::tanh(x));
}
