// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numbers>

#include <infty/core/random.hpp>
#include <infty/signal/fourier_basis.hpp>

#include "support/catch.hpp"
#include "support/quadrature.hpp"

using infty::CosineBasis;
using infty::FourierBasis;
using infty::Harmonics;
using infty::Index;
using infty::Random;
using infty::SineBasis;
using namespace infty::tests;

namespace {

constexpr double pi = std::numbers::pi;

template <Harmonics Which>
long double harmonic(Index j, long double t) {
  const auto whole = static_cast<long double>(Which == Harmonics::both    ? (j + 1) / 2
                                              : Which == Harmonics::sines ? 2 * (j + 1)
                                                                          : 2 * j);
  const long double angle = std::numbers::pi_v<long double> * whole * t;
  return Which == Harmonics::sines || (Which == Harmonics::both && j % 2 == 1) ? std::sin(angle)
                                                                               : std::cos(angle);
}

template <Harmonics Which>
double worst_integral() {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 600; ++i) {
    const auto j = static_cast<Index>(logarithmic(1, 600, random.uniform())) - 1;
    const infty::FourierBasis<double, Which> psi(j + 1);
    const double length = logarithmic(1e-8, 2, random.uniform());
    const double a = 2 * random.uniform() - 0.5, b = a + length;
    const double origins[] = {0, a, b, (a + b) / 2, 3};
    const double origin = origins[random.below(5)];
    const auto got = psi.integrals(j, a, b, origin);
    const double k_values[] = {got.zeroth, got.first, got.second};
    // Breaks half a period apart.
    std::vector<double> breaks;
    const double f = psi.frequency(j);
    for (double t = a; t < b && f > 0; t += 0.5 / f) breaks.push_back(t);
    for (int k = 0; k < 3; ++k) {
      const auto exact =
          integrate([&](long double t) { return std::pow(t - origin, k) * harmonic<Which>(j, t); },
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
  const double worst = worst_integral<Harmonics::sines>();
  CAPTURE(worst * 1e11);
  CHECK(worst <= 1e-11);
}

TEST_CASE("CosineBasis: integrals agree with quadrature") {
  const double worst = worst_integral<Harmonics::cosines>();
  CAPTURE(worst * 1e11);
  CHECK(worst <= 1e-11);
}

TEST_CASE("FourierBasis: integrals agree with quadrature") {
  const double worst = worst_integral<Harmonics::both>();
  CAPTURE(worst * 1e11);
  CHECK(worst <= 1e-11);
}

TEST_CASE("FourierBasis: values done by hand, a period of two") {
  const FourierBasis<double> psi(5);
  CHECK(psi(0, .3) == 1);
  CHECK(psi(1, .5) == Approx(1));
  CHECK(psi(2, 1.) == Approx(-1));
  CHECK(psi(3, .25) == Approx(1));
  CHECK(psi(4, .5) == Approx(-1));
  CHECK(psi.derivative(1, 0.) == Approx(pi));
  CHECK(psi.derivative(2, .5) == Approx(-pi));
  CHECK(psi.second_derivative(3, .25) == Approx(-4 * pi * pi));
  for (Index j = 0; j < 5; ++j) CHECK(psi(j, -.5) == Approx(psi(j, 1.5)).margin(1e-15));
}

TEST_CASE("SineBasis: float keeps its digits at high frequencies") {
  const SineBasis<float> psi(512);
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    const auto t = static_cast<float>(random.uniform());
    const Index j = random.below(512);
    CHECK(std::abs(psi(j, t) - static_cast<double>(harmonic<Harmonics::sines>(j, t))) < 1e-6);
  }
}

TEST_CASE("SineBasis and CosineBasis: refuse to be empty") {
  CHECK_THROWS_WITH(SineBasis<float>(0), "[SineBasis] N is 0: it must be at least 1");
  CHECK_THROWS_WITH(FourierBasis<float>(0), "[FourierBasis] N is 0: it must be at least 1");
  CHECK_THROWS_WITH(CosineBasis<float>(-1), "[CosineBasis] N is -1: it must be at least 1");
}
