// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "signal/expectations.hpp"
#include "support/catch.hpp"
#include "support/quadrature.hpp"

using infty::CosineBasis;
using infty::GaussianBasis;
using infty::Index;
using infty::PowerBasis;
using infty::Random;
using infty::SineBasis;
using infty::TruncatedParabola;
using namespace infty::tests;

namespace {

std::vector<Quadrature> parabola_by_quadrature(const auto& psi, double mu, double var,
                                               const std::vector<double>& breaks) {
  // In v = (t - mu) / h, so that the ends of the support are not rounded.
  const long double h = std::cbrt(1.5L * var);
  std::vector<double> scaled{0};
  for (const double t : breaks) scaled.push_back(static_cast<double>((t - mu) / h));
  std::vector<Quadrature> out;
  for (int which = 0; which < 3; ++which)
    out.push_back(integrate(
        [&](long double v) {
          const long double p = 0.75L * (1 - v * v);  // p(t) h
          const long double d_mu = 1.5L * v / h, d_var = (3 * v * v - 1) / (4 * var);
          return (which == 0 ? p : which == 1 ? d_mu : d_var) * psi(mu + h * v);
        },
        -1, 1, scaled));
  return out;
}

}  // namespace

TEST_CASE("TruncatedParabola: height, support and mass done by hand") {
  const double var = 2.0 / 3;  // half width 1, p(t) = 3/4 (1 - t^2)
  CHECK(TruncatedParabola::half_width(var) == Approx(1).epsilon(1e-15));
  CHECK(TruncatedParabola::pdf(0.25, 0.25, var) == Approx(0.75));
  CHECK(TruncatedParabola::pdf(0.75, 0.25, var) == Approx(0.75 * 0.75));
  CHECK(TruncatedParabola::pdf(1.26, 0.25, var) == 0);
  CHECK(TruncatedParabola::pdf(-0.76, 0.25, var) == 0);
  CHECK(TruncatedParabola::mass(-1.0, 1.0, 0.0, var) == Approx(1));
  CHECK(TruncatedParabola::mass(0.0, 9.0, 0.0, var) == Approx(0.5));
  CHECK(TruncatedParabola::mass(0.0, 0.5, 0.0, var) == Approx(0.75 * (0.5 - 0.125 / 3)));
  CHECK(TruncatedParabola::mass(2.0, 3.0, 0.0, var) == 0);
}

TEST_CASE("TruncatedParabola: pdf agrees with mass") {
  Random random(seed);
  for (int i = 0; i < 200; ++i) {
    const double mu = random.uniform(), var = logarithmic(1e-6, 10, random.uniform());
    const double h = TruncatedParabola::half_width(var);
    const double a = mu + h * (3 * random.uniform() - 1.5), b = a + h * random.uniform();
    const auto exact = integrate(
        [&](long double t) { return TruncatedParabola::pdf(static_cast<double>(t), mu, var); }, a,
        b, {mu - h, mu + h});
    CHECK(TruncatedParabola::mass(a, b, mu, var) ==
          Approx(static_cast<double>(exact.value)).epsilon(1e-9).margin(1e-9));
  }
}

TEST_CASE("TruncatedParabola: the divergence from a Gaussian prior agrees with quadrature") {
  const double worst =
      worst_divergence<TruncatedParabola>([](double var) { return std::cbrt(1.5 * var); });
  CAPTURE(worst);
  CHECK(worst < 1e-11);
  // Least where its variance, h² / 5, is the prior's.
  const double sigma0 = .2, h = std::sqrt(5.) * sigma0, var = 2 * h * h * h / 3;
  const auto least = TruncatedParabola::divergence(.3, var, sigma0);
  CHECK(least.d_var == Approx(0).margin(1e-12));
  CHECK(least.value ==
        Approx(std::log(3 / std::sqrt(5.)) - 7. / 6 + std::log(2 * std::numbers::pi) / 2));
  CHECK(least.value > .046);
}

TEST_CASE("TruncatedParabola: moments done by hand") {
  const double mu = 0.3, var = 0.01, h = TruncatedParabola::half_width(var);
  const PowerBasis<double> psi(3);
  CHECK(TruncatedParabola::expectation(psi, 0, mu, var) == Approx(1).epsilon(1e-14));
  CHECK(TruncatedParabola::expectation(psi, 1, mu, var) == Approx(mu).epsilon(1e-14));
  CHECK(TruncatedParabola::expectation(psi, 2, mu, var) ==
        Approx(mu * mu + h * h / 5).epsilon(1e-14));
  const auto square = TruncatedParabola::expectation_gradient(psi, 2, mu, var);
  CHECK(square.d_mu == Approx(2 * mu).epsilon(1e-14));
  CHECK(square.d_var == Approx(2 * h * h / (15 * var)).epsilon(1e-14));
}

TEST_CASE("TruncatedParabola: expectations agree with quadrature") {
  Random random(seed);
  std::vector<double> worst(4);
  for (int i = 0; i < 700; ++i) {
    const double mu = 1.4 * random.uniform() - 0.2;
    const double var = logarithmic(1e-8, 100, random.uniform());
    const double h = TruncatedParabola::half_width(var);
    const double s = logarithmic(1e-4, 10, random.uniform());
    const GaussianBasis<double> gaussian(5, {s});
    const Index j = random.below(5);
    const double c = gaussian.centre(j);
    // From inside the support to thirty widths beyond its end.
    const double near = c + (2 * random.uniform() - 1) * (h + 30 * s);
    worst[0] = std::max(
        worst[0], worst_error(TruncatedParabola::expectation_gradient(gaussian, j, near, var),
                              parabola_by_quadrature(
                                  [&](long double t) {
                                    const long double z = (t - c) / s;
                                    return std::exp(-z * z / 2) /
                                           (s * std::sqrt(2 * std::numbers::pi_v<long double>));
                                  },
                                  near, var, around(c, s))));
    const Index power = random.below(random.below(2) ? 8 : 60);
    worst[1] = std::max(
        worst[1],
        worst_error(TruncatedParabola::expectation_gradient(PowerBasis<double>(60), power, mu, var),
                    parabola_by_quadrature(
                        [&](long double t) { return std::pow(t, static_cast<int>(power)); }, mu,
                        var, {0})));
    const auto f =
        static_cast<Index>(logarithmic(1, std::min(600.0, 1 + 30 / h), random.uniform()));
    const long double omega = 2 * std::numbers::pi_v<long double> * static_cast<long double>(f);
    std::vector<double> breaks;
    for (double t = mu - h; t < mu + h; t += 0.5 / static_cast<double>(f)) breaks.push_back(t);
    worst[2] = std::max(
        worst[2],
        worst_error(TruncatedParabola::expectation_gradient(SineBasis<double>(f), f - 1, mu, var),
                    parabola_by_quadrature([&](long double t) { return std::sin(omega * t); }, mu,
                                           var, breaks)));
    worst[3] = std::max(
        worst[3],
        worst_error(TruncatedParabola::expectation_gradient(CosineBasis<double>(f + 1), f, mu, var),
                    parabola_by_quadrature([&](long double t) { return std::cos(omega * t); }, mu,
                                           var, breaks)));
  }
  const char* const name[] = {"Gaussian", "power", "sine", "cosine"};
  for (std::size_t k = 0; k < 4; ++k) {
    CAPTURE(name[k], worst[k] * 1e10);
    CHECK(worst[k] <= 1e-10);
  }
}

TEST_CASE("TruncatedParabola: wide functions under narrow densities keep all digits of d_var") {
  // Of a value of 0.04, d_var is 1e-6 of value / var: differences of moments would leave no digit
  // of it in float, and nine in double.
  const double s = 10, mu = 0.3, var = 1e-6;
  const auto got =
      TruncatedParabola::expectation_gradient(GaussianBasis<double>(1, {s}), 0, mu, var);
  const auto single = TruncatedParabola::expectation_gradient(
      GaussianBasis<float>(1, {s}), 0, static_cast<float>(mu), static_cast<float>(var));
  // E is psi + h^2 / 10 psi'' + O(h^4), h^2 = (3 var / 2)^(2/3).
  const double h = TruncatedParabola::half_width(var);
  const double curvature = GaussianBasis<double>(1, {s}).second_derivative(0, mu);
  CHECK(got.d_var == Approx(h * h / (15 * var) * curvature).epsilon(1e-5));
  CHECK(single.d_var == Approx(got.d_var).epsilon(1e-5));
}

TEST_CASE("TruncatedParabola: gradients agree with central differences") {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 300; ++i) {
    const double mu = random.uniform(), var = logarithmic(1e-3, 10, random.uniform());
    const Index j = random.below(6);
    worst = std::max(
        {worst,
         difference_error<TruncatedParabola>(GaussianBasis<double>(6, {0.05, 0.3}), j, mu, var),
         difference_error<TruncatedParabola>(PowerBasis<double>(6), j, mu, var),
         difference_error<TruncatedParabola>(SineBasis<double>(6), j, mu, var),
         difference_error<TruncatedParabola>(CosineBasis<double>(6), j, mu, var)});
  }
  CAPTURE(worst * 1e7);
  CHECK(worst <= 1e-7);
}

TEST_CASE("TruncatedParabola: float agrees with double") {
  CHECK(worst_float_error<TruncatedParabola>(GaussianBasis<float>(8, {0.05, 0.3}), 8) <= 1e-5);
  CHECK(worst_float_error<TruncatedParabola>(PowerBasis<float>(8), 8) <= 1e-5);
  CHECK(worst_float_error<TruncatedParabola>(SineBasis<float>(8), 8) <= 1e-5);
  CHECK(worst_float_error<TruncatedParabola>(CosineBasis<float>(8), 8) <= 1e-5);
}

TEST_CASE("TruncatedParabola: as narrow as a variance may be, all is finite and adds up to 1") {
  const infty::RectangularBasis<float> rectangles(8);
  const infty::GaussianBasis<float> gaussians(8, {0.05, 0.3});
  for (float var = 1e-2f; var > 1e-30f; var *= .2f)
    for (const float mu : {.03f, .125f, .5f, .6f, .999f}) {
      CAPTURE(var, mu);
      float all = 0;
      for (Index j = 0; j < 8; ++j) {
        const auto e = TruncatedParabola::expectation_gradient(rectangles, j, mu, var);
        REQUIRE((std::isfinite(e.d_mu) && std::isfinite(e.d_var)));
        all += e.value;
        const auto smooth = TruncatedParabola::expectation_gradient(gaussians, j, mu, var);
        REQUIRE((std::isfinite(smooth.d_mu) && std::isfinite(smooth.d_var)));
        if (var < 1e-10f)
          CHECK(smooth.value == Approx(gaussians(j, mu)).epsilon(1e-3).margin(1e-6));
      }
      const float h = TruncatedParabola::half_width(var);
      if (mu - h > 0 && mu + h < 1) CHECK(all == Approx(1).epsilon(.01));
    }
}

namespace {

// 1 on [0, 1], with nothing but the integrals.
struct ConstantWithIntegrals {
  using Scalar = double;
  Index size() const { return 1; }
  double operator()(Index, double) const { return 1; }
  infty::Integrals<double> integrals(Index, double a, double b, double origin) const {
    const double x = a - origin, y = b - origin;
    return {y - x, (y * y - x * x) / 2, (y * y * y - x * x * x) / 3};
  }
};

}  // namespace

TEST_CASE("TruncatedParabola: a basis of somebody else's needs only integrals") {
  STATIC_REQUIRE_FALSE(infty::SmoothBasis<ConstantWithIntegrals>);
  STATIC_REQUIRE(infty::DensityOver<TruncatedParabola, ConstantWithIntegrals>);
  const auto e = TruncatedParabola::expectation_gradient(ConstantWithIntegrals{}, 0, 0.4, 0.02);
  CHECK(e.value == Approx(1).epsilon(1e-14));
  CHECK(e.d_mu == Approx(0).margin(1e-12));
  CHECK(e.d_var == Approx(0).margin(1e-12));
}
