// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/power_basis.hpp>

#include "signal/expectations.hpp"
#include "support/catch.hpp"
#include "support/quadrature.hpp"

using infty::CosineBasis;
using infty::GaussianBasis;
using infty::GaussianDensity;
using infty::Index;
using infty::PowerBasis;
using infty::Random;
using infty::SineBasis;
using namespace infty::tests;

namespace {

// The density, and its derivatives to mu and var, in long double.
std::vector<Quadrature> gaussian_by_quadrature(const auto& psi, double mu, double var,
                                               std::vector<double> breaks) {
  const double reach = 14 * std::sqrt(var);  // beyond, the density is below 1e-42 of its peak
  for (const double t : around(mu, std::sqrt(var))) breaks.push_back(t);
  const long double norm = 1 / std::sqrt(2 * std::numbers::pi_v<long double> * var);
  std::vector<Quadrature> out;
  for (int which = 0; which < 3; ++which)
    out.push_back(integrate(
        [&](long double t) {
          const long double u = t - mu, p = norm * std::exp(-u * u / (2 * var));
          const long double factor =
              which == 0 ? 1 : (which == 1 ? u / var : (u * u / var - 1) / (2 * var));
          return factor * p * psi(t);
        },
        mu - reach, mu + reach, breaks));
  return out;
}

}  // namespace

TEST_CASE("GaussianDensity: pdf and mass done by hand") {
  CHECK(GaussianDensity::pdf(1.0, 1.0, 4.0) == Approx(0.19947114020071635).epsilon(1e-14));
  CHECK(GaussianDensity::pdf(3.0, 1.0, 4.0) == Approx(0.12098536225957168).epsilon(1e-14));
  CHECK(GaussianDensity::mass(-1.0, 1.0, 0.0, 1.0) == Approx(0.6826894921370859).epsilon(1e-14));
  // Phi(-10): a difference of values near 1 would have no digit of it.
  CHECK(GaussianDensity::mass(10.0, 40.0, 0.0, 1.0) ==
        Approx(7.61985302416052606e-24).epsilon(1e-12));
  CHECK(GaussianDensity::mass(-40.0, -10.0, 0.0, 1.0) ==
        Approx(7.61985302416052606e-24).epsilon(1e-12));
}

TEST_CASE("GaussianDensity: narrow ranges have their digits, near the mean and far from it") {
  Random random(seed);
  double worst = 0, worst_float = 0;
  for (int i = 0; i < 3000; ++i) {
    const double mu = random.uniform(), sigma = logarithmic(1e-3, 1e3, random.uniform());
    // As float has them, so that only what is computed of them differs.
    const auto a = static_cast<float>(mu + sigma * (16 * random.uniform() - 8));
    const auto b = static_cast<float>(a + sigma * logarithmic(1e-6, 1, random.uniform()));
    const auto m = static_cast<float>(mu), var = static_cast<float>(sigma * sigma);
    const long double v = var;
    const auto exact = integrate(
        [&](long double t) {
          const long double u = t - m;
          return std::exp(-u * u / (2 * v)) / std::sqrt(2 * std::numbers::pi_v<long double> * v);
        },
        a, b);
    if (a == b) continue;
    worst = std::max(worst, exact.error(GaussianDensity::mass<double>(a, b, m, var)));
    worst_float = std::max(worst_float, exact.error(GaussianDensity::mass(a, b, m, var)));
  }
  CAPTURE(worst, worst_float);
  CHECK(worst <= 1e-12);
  CHECK(worst_float <= 3e-4);
}

TEST_CASE("GaussianDensity: the divergence from the prior agrees with quadrature") {
  const double worst =
      worst_divergence<GaussianDensity>([](double var) { return 14 * std::sqrt(var); });
  CAPTURE(worst);
  CHECK(worst < 1e-11);
  CHECK(GaussianDensity::divergence(.5, .04, .2).value == Approx(0).margin(1e-15));
}

TEST_CASE("GaussianDensity: moments done by hand") {
  const PowerBasis<double> psi(5);
  const double mu = -0.5, var = 0.3;
  const double moment[] = {1, mu, mu * mu + var, mu * mu * mu + 3 * mu * var,
                           mu * mu * mu * mu + 6 * mu * mu * var + 3 * var * var};
  for (Index j = 0; j < 5; ++j)
    CHECK(GaussianDensity::expectation(psi, j, mu, var) ==
          Approx(moment[static_cast<std::size_t>(j)]).epsilon(1e-14));
  const auto fourth = GaussianDensity::expectation_gradient(psi, 4, mu, var);
  CHECK(fourth.d_mu == Approx(4 * mu * mu * mu + 12 * mu * var).epsilon(1e-14));
  CHECK(fourth.d_var == Approx(6 * mu * mu + 6 * var).epsilon(1e-14));
}

TEST_CASE("GaussianDensity: expectations agree with quadrature") {
  Random random(seed);
  std::vector<double> worst(4);
  for (int i = 0; i < 250; ++i) {
    const double mu = 1.4 * random.uniform() - 0.2;
    const double sigma = logarithmic(1e-4, 10, random.uniform()), var = sigma * sigma;
    // Where both are narrow, they meet: elsewhere the value is 0 in any arithmetic.
    const double s = logarithmic(1e-4, 10, random.uniform());
    const GaussianBasis<double> gaussian(5, {s});
    const Index j = random.below(5);
    const double c = gaussian.centre(j);
    const double near = c + (12 * random.uniform() - 6) * std::hypot(s, sigma);
    worst[0] = std::max(
        worst[0], worst_error(GaussianDensity::expectation_gradient(gaussian, j, near, var),
                              gaussian_by_quadrature(
                                  [&](long double t) {
                                    const long double z = (t - c) / s;
                                    return std::exp(-z * z / 2) /
                                           (s * std::sqrt(2 * std::numbers::pi_v<long double>));
                                  },
                                  near, var, around(c, s))));
    const Index power = random.below(12);
    worst[1] = std::max(
        worst[1],
        worst_error(
            GaussianDensity::expectation_gradient(PowerBasis<double>(12), power, mu, var),
            gaussian_by_quadrature(
                [&](long double t) { return std::pow(t, static_cast<int>(power)); }, mu, var, {})));
    // A harmonic of many periods under a wide density has an expectation of 0.
    const auto f =
        static_cast<Index>(logarithmic(1, std::min(600.0, 1 + 3 / sigma), random.uniform()));
    const long double omega = 2 * std::numbers::pi_v<long double> * static_cast<long double>(f);
    worst[2] = std::max(
        worst[2],
        worst_error(GaussianDensity::expectation_gradient(SineBasis<double>(f), f - 1, mu, var),
                    gaussian_by_quadrature([&](long double t) { return std::sin(omega * t); }, mu,
                                           var, {})));
    worst[3] = std::max(
        worst[3],
        worst_error(GaussianDensity::expectation_gradient(CosineBasis<double>(f + 1), f, mu, var),
                    gaussian_by_quadrature([&](long double t) { return std::cos(omega * t); }, mu,
                                           var, {})));
  }
  const char* const name[] = {"Gaussian", "power", "sine", "cosine"};
  for (std::size_t k = 0; k < 4; ++k) {
    CAPTURE(name[k], worst[k] * 1e10);
    CHECK(worst[k] <= 1e-10);
  }
}

TEST_CASE("GaussianDensity: gradients agree with central differences") {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 300; ++i) {
    const double mu = random.uniform(), var = logarithmic(1e-3, 10, random.uniform());
    const Index j = random.below(6);
    worst = std::max(
        {worst,
         difference_error<GaussianDensity>(GaussianBasis<double>(6, {0.05, 0.3}), j, mu, var),
         difference_error<GaussianDensity>(PowerBasis<double>(6), j, mu, var),
         difference_error<GaussianDensity>(SineBasis<double>(6), j, mu, var),
         difference_error<GaussianDensity>(CosineBasis<double>(6), j, mu, var)});
  }
  CAPTURE(worst * 1e7);
  CHECK(worst <= 1e-7);
}

TEST_CASE("GaussianDensity: float agrees with double") {
  CHECK(worst_float_error<GaussianDensity>(GaussianBasis<float>(8, {0.05, 0.3}), 8) <= 1e-5);
  CHECK(worst_float_error<GaussianDensity>(PowerBasis<float>(8), 8) <= 1e-5);
  CHECK(worst_float_error<GaussianDensity>(SineBasis<float>(8), 8) <= 1e-5);
  CHECK(worst_float_error<GaussianDensity>(CosineBasis<float>(8), 8) <= 1e-5);
}

namespace {

struct ConstantBasis {
  using Scalar = double;
  Index size() const { return 1; }
  double operator()(Index, double) const { return 1; }
};

struct ConstantWithExpectation : ConstantBasis {
  infty::Expectation<double> gaussian_expectation(Index, double, double) const { return {1, 0, 0}; }
};

}  // namespace

TEST_CASE("GaussianDensity: a basis of somebody else's brings its expectation") {
  STATIC_REQUIRE_FALSE(infty::DensityOver<GaussianDensity, ConstantBasis>);
  STATIC_REQUIRE(infty::DensityOver<GaussianDensity, ConstantWithExpectation>);
  CHECK(GaussianDensity::expectation(ConstantWithExpectation{}, 0, 0.5, 1.0) == 1);
}
