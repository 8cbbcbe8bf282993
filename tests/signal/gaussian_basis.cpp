// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/gaussian_basis.hpp>

#include "support/catch.hpp"
#include "support/quadrature.hpp"

using infty::GaussianBasis;
using infty::Index;
using infty::Random;
using namespace infty::tests;

namespace {

long double gaussian(long double t, long double c, long double s) {
  const long double z = (t - c) / s;
  return std::exp(-z * z / 2) / (s * std::sqrt(2 * std::numbers::pi_v<long double>));
}

}  // namespace

TEST_CASE("GaussianBasis: every width at every centre, centre by centre") {
  const GaussianBasis<double> psi(6, {0.01, 0.05});
  const double centre[] = {0, 0, 0.5, 0.5, 1, 1}, width[] = {0.01, 0.05, 0.01, 0.05, 0.01, 0.05};
  REQUIRE(psi.size() == 6);
  CHECK(psi.widths() == 2);
  for (Index j = 0; j < 6; ++j) {
    CHECK(psi.centre(j) == centre[j]);
    CHECK(psi.width(j) == width[j]);
  }
  CHECK(psi(2, 0.5) == Approx(1 / (0.01 * std::sqrt(2 * std::numbers::pi))).epsilon(1e-14));
  CHECK(psi(3, 0.55) / psi(3, 0.5) == Approx(std::exp(-0.5)).epsilon(1e-14));
}

TEST_CASE("GaussianBasis: the last centre is 1 to the bit, a single one is 0") {
  for (Index n = 2; n < 200; ++n) {
    const GaussianBasis<float> psi(n, {0.1});
    CHECK(psi.centre(0) == 0.0f);
    CHECK(psi.centre(n - 1) == 1.0f);
  }
  CHECK(GaussianBasis<double>(1, {0.1}).centre(0) == 0);
  CHECK(GaussianBasis<double>(3, std::vector<double>{1, 2, 3}).centre(2) == 0);
}

TEST_CASE("GaussianBasis: derivatives are the slopes of values") {
  const GaussianBasis<double> psi(4, {0.1, 0.3});
  Random random(seed);
  for (int i = 0; i < 200; ++i) {
    const double t = random.uniform(), h = 1e-4;
    for (Index j = 0; j < psi.size(); ++j) {
      CHECK(psi.derivative(j, t) ==
            Approx((psi(j, t + h) - psi(j, t - h)) / (2 * h)).epsilon(1e-4).margin(1e-4));
      CHECK(psi.second_derivative(j, t) ==
            Approx((psi.derivative(j, t + h) - psi.derivative(j, t - h)) / (2 * h))
                .epsilon(1e-4)
                .margin(1e-3));
    }
  }
}

// The error is measured by the integral of |t - origin|^k psi, which for even k is the integral
// itself: the digits hold in the tails, where psi is 1e-200, too.
TEST_CASE("GaussianBasis: however far away, nothing is left and nothing is NaN") {
  const infty::GaussianBasis<float> basis(8, std::vector<float>{.05f, .1f});
  for (const float t : {1e3f, 1e18f, -1e19f, 1e30f, 3e38f, -3e38f})
    for (infty::Index j = 0; j < 8; ++j) {
      CAPTURE(t, j);
      CHECK(basis(j, t) == 0);
      CHECK(basis.derivative(j, t) == 0);
      CHECK(basis.second_derivative(j, t) == 0);
      const auto e = basis.gaussian_expectation(j, t, .01f);
      CHECK(e.value == 0);
      CHECK(e.d_mu == 0);
      CHECK(e.d_var == 0);
    }
}

TEST_CASE("GaussianBasis: integrals agree with quadrature") {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 2500; ++i) {
    const double s = logarithmic(1e-4, 10, random.uniform());
    const GaussianBasis<double> psi(5, {s});
    const Index j = random.below(5);
    const double c = psi.centre(j);
    // Intervals from 1e-6 widths to thousands of widths, inside the bulk and up to 35 widths away.
    const double length = s * logarithmic(1e-6, 1e4, random.uniform());
    const double a = c + s * (70 * random.uniform() - 35) - (random.below(2) ? length : 0);
    const double b = a + length;
    const double origins[] = {0, a, b, (a + b) / 2, c, 3};
    const double origin = origins[random.below(6)];
    const auto got = psi.integrals(j, a, b, origin);
    const double k_values[] = {got.zeroth, got.first, got.second};
    for (int k = 0; k < 3; ++k) {
      const auto exact =
          integrate([&](long double t) { return std::pow(t - origin, k) * gaussian(t, c, s); }, a,
                    b, around(c, s));
      if (exact.scale < 1e-290L) continue;
      const double e = exact.error(k_values[k]);
      CAPTURE(s, c, a, b, origin, k, k_values[k], static_cast<double>(exact.value), e);
      if (e > 1e-11) CHECK(e <= 1e-11);
      worst = std::max(worst, e);
    }
  }
  CAPTURE(worst);
  CHECK(worst <= 1e-11);
}

TEST_CASE("GaussianBasis: integrals add up, change sign with the ends, and reach infinity") {
  Random random(seed);
  const double inf = std::numeric_limits<double>::infinity();
  const GaussianBasis<double> psi(4, {0.02, 0.3});
  for (int i = 0; i < 500; ++i) {
    const Index j = random.below(psi.size());
    const double a = 2 * random.uniform() - 0.5, b = 2 * random.uniform() - 0.5;
    const double c = psi.centre(j), s = psi.width(j), o = random.uniform();
    const auto there = psi.integrals(j, a, b, o), back = psi.integrals(j, b, a, o);
    CHECK(there.zeroth == -back.zeroth);
    CHECK(there.first == -back.first);
    CHECK(there.second == -back.second);
    const auto low = psi.integrals(j, -inf, a, o), high = psi.integrals(j, a, inf, o);
    CHECK(low.zeroth + high.zeroth == Approx(1).epsilon(1e-13));
    CHECK(low.first + high.first == Approx(c - o).epsilon(1e-13).margin(1e-14));
    CHECK(low.second + high.second == Approx((c - o) * (c - o) + s * s).epsilon(1e-13));
    const auto all = psi.integrals(j, -inf, inf, o);
    CHECK(all.zeroth == Approx(1).epsilon(1e-15));
    CHECK(all.second == Approx((c - o) * (c - o) + s * s).epsilon(1e-14));
  }
  CHECK(psi.integrals(0, 0.3, 0.3).zeroth == 0);
}

TEST_CASE("GaussianBasis: float agrees with double") {
  Random random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto s = static_cast<float>(logarithmic(1e-2, 10, random.uniform()));
    const GaussianBasis<float> psi(5, std::vector<float>{s});
    const auto exact = psi.cast<double>();
    REQUIRE(exact.width(0) == s);
    const Index j = 4 * random.below(2);  // the centres of the others are rounded
    const auto a = static_cast<float>(psi.centre(j) + s * (8 * random.uniform() - 4));
    const auto b = a + static_cast<float>(s * logarithmic(1e-4, 10, random.uniform()));
    const auto got = psi.integrals(j, a, b, a);
    const auto want = exact.integrals(j, a, b, a);
    CHECK(got.zeroth == Approx(want.zeroth).epsilon(3e-5));
    CHECK(got.first == Approx(want.first).epsilon(3e-5));
    CHECK(got.second == Approx(want.second).epsilon(1e-4));
  }
}

TEST_CASE("GaussianBasis: refuses widths and sizes out of range") {
  using Catch::Matchers::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH((GaussianBasis<double>(7, {0.1, 0.2})),
                    Contains("[GaussianBasis] N is 7 with 2 widths"));
  CHECK_THROWS_AS((GaussianBasis<double>(0, {0.1})), infty::ValueError);
  CHECK_THROWS_AS((GaussianBasis<double>(-2, {0.1})), infty::ValueError);
  CHECK_THROWS_WITH((GaussianBasis<double>(4, {0.1, 0.0})), Contains("width 1 is 0"));
  CHECK_THROWS_AS((GaussianBasis<double>(4, {-0.1})), infty::ValueError);
  CHECK_THROWS_AS((GaussianBasis<double>(4, {nan})), infty::ValueError);
  CHECK_THROWS_AS((GaussianBasis<float>(4, {1e60})), infty::ValueError);  // infinite in float
  CHECK_THROWS_AS((GaussianBasis<float>(4, {1e-60})), infty::ValueError);
  CHECK_THROWS_WITH((GaussianBasis<float>(4, {1e-20})), Contains("width 0 is 1e-20"));
  CHECK_THROWS_WITH((GaussianBasis<float>(4, {1e20})), Contains("width 0 is 1e+20"));
  CHECK_NOTHROW(GaussianBasis<double>(4, {1e-20, 1e20}));
  CHECK_THROWS_WITH((GaussianBasis<double>(18, std::vector<double>(9, 0.1))),
                    Contains("9 widths: there must be 1 to 8"));
  CHECK_THROWS_AS((GaussianBasis<double>(4, std::vector<double>{})), infty::ValueError);
  // Places that double has and float has not: infinite ones, and steps of nothing.
  const std::vector<double> width{.1};
  CHECK_THROWS_WITH((GaussianBasis<float>(4, width, 1e300, 1)), Contains("centres from 1e+300"));
  CHECK_THROWS_WITH((GaussianBasis<float>(4, width, 0, 1e-300)), Contains("by steps of 1e-300"));
  CHECK_THROWS_WITH((GaussianBasis<float>(4, width, 0, 2e38)), Contains("by steps of 2e+38"));
  CHECK_THROWS_AS((GaussianBasis<double>(4, width, nan, 1)), infty::ValueError);
  CHECK_THROWS_AS((GaussianBasis<double>(4, width, 0, nan)), infty::ValueError);
  CHECK((GaussianBasis<float>(2, width, 0, 2e38).centre(1)) == 2e38f);
}
