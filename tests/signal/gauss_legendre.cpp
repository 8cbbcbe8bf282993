// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/signal/gauss_legendre.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

TEMPLATE_TEST_CASE("gauss_legendre: exact for every polynomial up to degree 23", "", float,
                   double) {
  for (int degree = 0; degree <= 23; ++degree) {
    TestType sum = 0;
    infty::gauss_legendre<TestType>(
        [&](TestType v, TestType w) { sum += w * std::pow(v, static_cast<TestType>(degree)); });
    const double exact = degree % 2 ? 0 : 2.0 / (degree + 1);
    CAPTURE(degree);
    CHECK(std::abs(sum - exact) < infty::tests::tolerance<TestType>);
  }
}
