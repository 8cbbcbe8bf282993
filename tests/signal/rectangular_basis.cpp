// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/positions.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/signal/ridge.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "signal/expectations.hpp"
#include "support/catch.hpp"
#include "support/quadrature.hpp"

using infty::GaussianDensity;
using infty::Index;
using infty::LastCell;
using infty::Positions;
using infty::Random;
using infty::RectangularBasis;
using infty::TruncatedParabola;
using namespace infty::tests;

TEST_CASE("RectangularBasis: every place of [0, 1] lies in one cell") {
  const RectangularBasis<double> psi(4);
  CHECK((psi(0, 0.) == 1 && psi(0, .25) == 0 && psi(1, .25) == 1 && psi(3, 1.) == 1));
  CHECK((psi(0, -1e-9) == 0 && psi(3, 1 + 1e-9) == 0));
  CHECK(RectangularBasis<double>(4, LastCell::open)(3, 1.) == 0);
  CHECK(RectangularBasis<double>(4, LastCell::open).cast<float>()(3, 1.f) == 0);
  for (const Index n : {1, 3, 7, 100, 1024}) {
    const RectangularBasis<float> cells(n);
    Random random(seed);
    for (int i = 0; i < 200; ++i) {
      const float t = i < 2 ? static_cast<float>(i) : static_cast<float>(random.uniform());
      float sum = 0;
      for (Index j = 0; j < n; ++j) sum += cells(j, t);
      CHECK(sum == 1);
    }
  }
  CHECK_THROWS_WITH(RectangularBasis<float>(0), "[RectangularBasis] N is 0: it must be at least 1");
}

TEST_CASE("RectangularBasis: centre and width are the moments of a cell") {
  const RectangularBasis<double> psi(5);
  for (Index j = 0; j < 5; ++j) {
    const auto m = psi.integrals(j, 0., 1., psi.centre(j));
    CHECK(m.zeroth == Approx(.2));
    CHECK(m.first == Approx(0).margin(1e-15));
    CHECK(m.second / m.zeroth == Approx(psi.width(j) * psi.width(j)));
  }
}

TEST_CASE("RectangularBasis: integrals agree with quadrature") {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 500; ++i) {
    const Index n = 1 + random.below(50), j = random.below(n);
    const RectangularBasis<double> psi(n);
    const double a = 2 * random.uniform() - .5, b = a + logarithmic(1e-6, 1.5, random.uniform());
    const double origins[] = {0, a, b, (a + b) / 2, 3};
    const double origin = origins[random.below(5)];
    const auto got = psi.integrals(j, a, b, origin);
    const auto back = psi.integrals(j, b, a, origin);
    CHECK((back.zeroth == -got.zeroth && back.first == -got.first && back.second == -got.second));
    const double k_values[] = {got.zeroth, got.first, got.second};
    const double low = std::max(a, psi.begin(j)), high = std::min(b, psi.begin(j + 1));
    for (int k = 0; k < 3; ++k) {
      if (low >= high) {
        CHECK(k_values[k] == 0);
        continue;
      }
      const auto exact =
          integrate([&](long double t) { return std::pow(t - origin, k); }, low, high);
      worst = std::max(worst, exact.error(k_values[k]));
    }
  }
  CAPTURE(worst);
  CHECK(worst <= 1e-13);
}

TEST_CASE("RectangularBasis: expectations of both densities agree with quadrature") {
  Random random(seed);
  double gaussian = 0, parabola = 0;
  for (int i = 0; i < 400; ++i) {
    const Index n = 1 + random.below(200), j = random.below(n);
    const RectangularBasis<double> psi(n);
    const double mu = random.uniform(), var = logarithmic(1e-6, 2, random.uniform());
    const auto over_cell = [&](const auto& f, double low, double high) {
      low = std::max(low, psi.begin(j));
      high = std::min(high, psi.begin(j + 1));
      return low < high ? integrate(f, low, high, around(mu, std::sqrt(var))) : Quadrature{};
    };
    std::vector<Quadrature> of_gaussian, of_parabola;
    const double h = TruncatedParabola::half_width(var);
    for (int which = 0; which < 3; ++which) {
      of_gaussian.push_back(over_cell(
          [&](long double t) {
            const long double u = t - mu;
            const long double p =
                std::exp(-u * u / (2 * var)) / std::sqrt(2 * std::numbers::pi_v<long double> * var);
            return p * (which == 0 ? 1 : which == 1 ? u / var : (u * u / var - 1) / (2 * var));
          },
          0, 1));
      of_parabola.push_back(over_cell(
          [&](long double t) {
            const long double u = t - mu, w = std::cbrt(1.5L * var);
            const long double p = (w * w - u * u) / (2 * var);
            const long double d_var = (w * w / 1.5L) / (2 * var * var) - p / var;
            return which == 0 ? p : which == 1 ? u / var : d_var;
          },
          mu - h, mu + h));
    }
    gaussian = std::max(
        gaussian, worst_error(GaussianDensity::expectation_gradient(psi, j, mu, var), of_gaussian));
    parabola = std::max(
        parabola,
        worst_error(TruncatedParabola::expectation_gradient(psi, j, mu, var), of_parabola));
  }
  CAPTURE(gaussian, parabola);
  CHECK(gaussian <= 1e-11);
  CHECK(parabola <= 1e-11);
  const RectangularBasis<float> psi(64);
  CHECK(worst_float_error<GaussianDensity>(psi, 64) < 2e-6);
}

TEST_CASE("RectangularBasis: a fit is the sum over each cell over count + penalty") {
  // What Infinite-Video's program writes, whose last cell is open.
  for (const LastCell last : {LastCell::closed, LastCell::open}) {
    const RectangularBasis<double> psi(16, last);
    for (const Positions& places : {infty::first_positions(8), infty::next_positions(8, 16, .75)}) {
      const auto G = infty::ridge_matrix<infty::EigenBackend>(psi, places, .5).to_vector();
      std::vector<double> count(16, 0);
      const auto cell = [&](double t) {
        return t == 1 ? last == LastCell::closed ? 15 : -1 : static_cast<int>(t * 16);
      };
      for (const double t : places.inside)
        if (cell(t) >= 0) count[static_cast<std::size_t>(cell(t))] += 1;
      for (std::size_t i = 0; i < places.inside.size(); ++i)
        for (int j = 0; j < 16; ++j) {
          const auto at = static_cast<std::size_t>(j);
          CHECK(G[i * 16 + at] == Approx(cell(places.inside[i]) == j ? 1 / (count[at] + .5) : 0.));
        }
    }
  }
}
