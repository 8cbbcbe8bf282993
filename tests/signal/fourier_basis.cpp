// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numbers>

#include <infty/core/random.hpp>
#include <infty/signal/fourier_basis.hpp>

#include "support/catch.hpp"
#include "support/quadrature.hpp"

using infty::CosineBasis;
using infty::Index;
using infty::Random;
using infty::SineBasis;
using namespace infty::tests;

namespace {

constexpr double pi = std::numbers::pi;

template <bool Sine>
long double harmonic(Index frequency, long double t) {
  const long double angle =
      2 * std::numbers::pi_v<long double> * static_cast<long double>(frequency) * t;
  return Sine ? std::sin(angle) : std::cos(angle);
}

template <bool Sine>
double worst_integral() {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 600; ++i) {
    const auto j = static_cast<Index>(logarithmic(1, 600, random.uniform())) - 1;
    const infty::FourierBasis<double, Sine> psi(j + 1);
    const double length = logarithmic(1e-8, 2, random.uniform());
    const double a = 2 * random.uniform() - 0.5, b = a + length;
    const double origins[] = {0, a, b, (a + b) / 2, 3};
    const double origin = origins[random.below(5)];
    const auto got = psi.integrals(j, a, b, origin);
    const double k_values[] = {got.zeroth, got.first, got.second};
    // Breaks half a period apart.
    std::vector<double> breaks;
    const auto f = static_cast<double>(psi.frequency(j));
    for (double t = a; t < b && f > 0; t += 0.5 / f) breaks.push_back(t);
    for (int k = 0; k < 3; ++k) {
      const auto exact = integrate(
          [&](long double t) {
            return std::pow(t - origin, k) * harmonic<Sine>(psi.frequency(j), t);
          },
          a, b, breaks);
      worst = std::max(worst, exact.error(k_values[k]));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("SineBasis and CosineBasis: values done by hand") {
  const SineBasis<double> sine(3);
  const CosineBasis<double> cosine(3);
  CHECK(sine.size() == 3);
  CHECK(sine(0, 0.25) == Approx(1));
  CHECK(sine(1, 0.125) == Approx(1));
  CHECK(cosine(0, 0.3) == 1);
  CHECK(cosine(1, 0.5) == Approx(-1));
  CHECK(cosine(2, 0.25) == Approx(-1));
  CHECK(sine.derivative(1, 0.0) == Approx(4 * pi));
  CHECK(cosine.derivative(1, 0.25) == Approx(-2 * pi));
  CHECK(cosine.derivative(0, 0.25) == 0);
  CHECK(sine.second_derivative(0, 0.25) == Approx(-4 * pi * pi));
}

TEST_CASE("SineBasis and CosineBasis: integrals done by hand") {
  const SineBasis<double> sine(3);
  const CosineBasis<double> cosine(3);
  CHECK(sine.integrals(0, 0.0, 0.5).zeroth == Approx(1 / pi));
  CHECK(sine.integrals(0, 0.0, 1.0).first == Approx(-1 / (2 * pi)));
  CHECK(sine.integrals(2, 0.0, 1.0).zeroth == Approx(0).margin(1e-15));
  CHECK(cosine.integrals(1, 0.0, 1.0).second == Approx(1 / (2 * pi * pi)));
  CHECK(cosine.integrals(0, 0.0, 3.0, 0.0).second == Approx(9));
}

TEST_CASE("SineBasis: integrals agree with quadrature") {
  const double worst = worst_integral<true>();
  CAPTURE(worst * 1e11);
  CHECK(worst <= 1e-11);
}

TEST_CASE("CosineBasis: integrals agree with quadrature") {
  const double worst = worst_integral<false>();
  CAPTURE(worst * 1e11);
  CHECK(worst <= 1e-11);
}

TEST_CASE("SineBasis: float keeps its digits at high frequencies") {
  const SineBasis<float> psi(512);
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    const auto t = static_cast<float>(random.uniform());
    const Index j = random.below(512);
    CHECK(std::abs(psi(j, t) - static_cast<double>(harmonic<true>(j + 1, t))) < 1e-6);
  }
}

TEST_CASE("SineBasis and CosineBasis: refuse to be empty") {
  CHECK_THROWS_WITH(SineBasis<float>(0), "[SineBasis] N is 0: it must be at least 1");
  CHECK_THROWS_WITH(CosineBasis<float>(-1), "[CosineBasis] N is -1: it must be at least 1");
}
