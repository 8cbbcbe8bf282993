// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>

#include <infty/signal/normal_integrals.hpp>

#include "support/catch.hpp"

TEST_CASE("normal_mass: tails keep their digits") {
  CHECK(infty::detail::normal_mass(-1.0, 1.0) == Approx(0.68268949213708590).epsilon(1e-15));
  CHECK(infty::detail::normal_mass(5.0, 6.0) == Approx(2.856649842341562e-07).epsilon(1e-14));
  CHECK(infty::detail::normal_mass(-6.0, -5.0) == infty::detail::normal_mass(5.0, 6.0));
  CHECK(infty::detail::normal_mass(30.0, std::numeric_limits<double>::infinity()) ==
        Approx(4.906713927148187e-198).epsilon(1e-13));
}

TEST_CASE("normal_mass: narrow ranges near the mean keep their digits") {
  constexpr double pdf = 0.39894228040143267794993606;
  for (const double w : {1e-3, 1e-6, 1e-9, 1e-12, 1e-30})
    for (const double side : {1., -1.}) {
      const double x = side > 0 ? w : -2 * w, y = side > 0 ? 2 * w : -w;
      CAPTURE(w, side);
      // phi (1 - z^2 / 2), whose next term is z^4 / 8.
      const double wanted = pdf * (w - (8 - 1) * w * w * w / 6);
      CHECK(std::fabs(infty::detail::normal_mass(x, y) / wanted - 1) < 1e-11);
      const auto narrow = infty::detail::normal_mass(static_cast<float>(x), static_cast<float>(y));
      CHECK(std::fabs(static_cast<double>(narrow) / wanted - 1) < 1e-6);
    }
}

TEST_CASE("normal_tail: the recursion that cannot be run upwards holds") {
  for (const double x : {3.0, 3.5, 5.0, 10.0, 40.0}) {
    const auto e = infty::detail::normal_tail(x);
    CHECK(e.first + x * e.zeroth == Approx(1).epsilon(1e-15));
    // E_2 = E_0 - x E_1, but for the digits that the difference loses.
    CHECK(e.second == Approx(e.zeroth - x * e.first).epsilon(1e-15 * std::pow(x, 4) + 1e-14));
    if (x < 20)
      CHECK(e.zeroth == Approx(std::erfc(x / std::sqrt(2.0)) / (2 * infty::detail::normal_pdf(x)))
                            .epsilon(1e-13));
  }
}

// Where one formula hands over to the next, both must give the same.
TEST_CASE("normal_integrals: continuous where the formula changes") {
  const auto close = [](const auto& a, const auto& b) {
    CHECK(a.zeroth == Approx(b.zeroth).epsilon(1e-9));
    CHECK(a.first == Approx(b.first).epsilon(1e-9));
    CHECK(a.second == Approx(b.second).epsilon(1e-9));
  };
  const double step = 1e-12;
  for (const double length : {1.99, 2.0, 4.0, 300.0})  // 3 (3 + length) ... tails begin at x = 3
    close(infty::detail::normal_integrals(3 - step, length, 0.0, -3 + step),
          infty::detail::normal_integrals(3 + step, length, 0.0, -3 - step));
  for (const double x : {-1.2, -0.5, 0.0, 0.1})  // short pieces end at length 2.4
    close(infty::detail::normal_integrals(x, 2.4 - step, 0.0, -x),
          infty::detail::normal_integrals(x, 2.4 + step, 0.0, -x));
  for (const double x : {1.0, 3.0, 10.0}) {  // and where (x + length) length is 6
    const double length = (-x + std::sqrt(x * x + 24)) / 2;
    close(infty::detail::normal_integrals(x, length - step, 0.0, -x),
          infty::detail::normal_integrals(x, length + step, 0.0, -x));
  }
}

TEST_CASE("normal_integrals: nothing is left beyond 100 widths, NaN stays NaN") {
  CHECK(infty::detail::normal_integrals(101.0, 5.0, 0.0, -101.0).zeroth == 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(infty::detail::normal_integrals(nan, 5.0, 0.0, 0.0).second));
}
