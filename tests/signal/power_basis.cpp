// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <infty/core/random.hpp>
#include <infty/signal/power_basis.hpp>

#include "support/catch.hpp"
#include "support/quadrature.hpp"

using infty::Index;
using infty::PowerBasis;
using infty::Random;
using namespace infty::tests;

TEST_CASE("PowerBasis: powers and their derivatives") {
  const PowerBasis<double> psi(5);
  REQUIRE(psi.size() == 5);
  CHECK(psi(0, 0.0) == 1);
  CHECK(psi(0, -3.0) == 1);
  CHECK(psi(3, -2.0) == -8);
  CHECK(psi.derivative(0, 2.0) == 0);
  CHECK(psi.derivative(1, 0.0) == 1);
  CHECK(psi.derivative(4, 2.0) == 32);
  CHECK(psi.second_derivative(1, 2.0) == 0);
  CHECK(psi.second_derivative(2, 0.0) == 2);
  CHECK(psi.second_derivative(4, 2.0) == 48);
}

TEST_CASE("PowerBasis: integrals done by hand") {
  const PowerBasis<double> psi(101);
  CHECK(psi.integrals(2, 0.0, 3.0).zeroth == Approx(9).epsilon(1e-14));
  CHECK(psi.integrals(2, 0.0, 3.0).first == Approx(81.0 / 4).epsilon(1e-14));
  CHECK(psi.integrals(2, 0.0, 3.0).second == Approx(243.0 / 5).epsilon(1e-14));
  CHECK(psi.integrals(0, 1.0, 3.0, 2.0).first == Approx(0).margin(1e-15));
  CHECK(psi.integrals(0, 1.0, 3.0, 2.0).second == Approx(2.0 / 3).epsilon(1e-14));
  CHECK(psi.integrals(100, 0.0, 1.0).zeroth == Approx(1.0 / 101).epsilon(1e-13));
  CHECK(psi.integrals(100, 0.0, 1.0, 1.0).second ==
        Approx(1.0 / 101 - 2.0 / 102 + 1.0 / 103).epsilon(1e-9));  // the right side cancels
  CHECK(psi.integrals(3, 2.0, 1.0).zeroth == -psi.integrals(3, 1.0, 2.0).zeroth);
}

TEST_CASE("PowerBasis: integrals agree with quadrature") {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 2000; ++i) {
    const Index j = random.below(random.below(2) ? 8 : 200);
    const PowerBasis<double> psi(j + 1);
    const double length = logarithmic(1e-6, 4, random.uniform());
    const double a = 4 * random.uniform() - 2, b = a + length;
    const double origins[] = {0, a, b, (a + b) / 2, 3};
    const double origin = origins[random.below(5)];
    const auto got = psi.integrals(j, a, b, origin);
    const double k_values[] = {got.zeroth, got.first, got.second};
    for (int k = 0; k < 3; ++k) {
      const auto exact = integrate(
          [&](long double t) { return std::pow(t - origin, k) * std::pow(t, static_cast<int>(j)); },
          a, b, {0.0, origin});
      if (exact.scale < 1e-290L) continue;
      worst = std::max(worst, exact.error(k_values[k]));
    }
  }
  CAPTURE(worst * 1e12);
  CHECK(worst <= 1e-12);
}

TEST_CASE("PowerBasis: float agrees with double") {
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    const Index j = random.below(40);
    const PowerBasis<float> psi(40);
    const auto a = static_cast<float>(random.uniform());
    const auto b = a + static_cast<float>(random.uniform());
    const auto got = psi.integrals(j, a, b, a);
    const auto want = psi.cast<double>().integrals(j, a, b, a);
    CHECK(got.zeroth == Approx(want.zeroth).epsilon(2e-5).margin(1e-30));
    CHECK(got.first == Approx(want.first).epsilon(2e-5).margin(1e-30));
    CHECK(got.second == Approx(want.second).epsilon(2e-5).margin(1e-30));
  }
}

TEST_CASE("PowerBasis: refuses to be empty") {
  CHECK_THROWS_WITH(PowerBasis<float>(0), "[PowerBasis] N is 0: it must be at least 1");
}
