// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/density.hpp>

#include "support/catch.hpp"
#include "support/quadrature.hpp"

namespace infty::tests {

/// The largest error of value, d_mu and d_var, each measured by the integral of the absolute
/// value of what quadrature integrated for it.
inline double worst_error(const Expectation<double>& got, const std::vector<Quadrature>& exact) {
  const double values[] = {got.value, got.d_mu, got.d_var};
  double worst = 0;
  for (std::size_t k = 0; k < 3; ++k)
    if (exact[k].scale > 1e-290L) worst = std::max(worst, exact[k].error(values[k]));
  return worst;
}

/// The error of the gradient against Richardson's central differences of the value, measured by
/// the gradient or by what a change of mu of the density's own width changes, if that is more.
template <class D, class Psi>
double difference_error(const Psi& psi, Index j, double mu, double var) {
  const auto got = D::expectation_gradient(psi, j, mu, var);
  const auto slope = [](auto f, double h) {
    const double wide = (f(h) - f(-h)) / (2 * h), narrow = (f(h / 2) - f(-h / 2)) / h;
    return (4 * narrow - wide) / 3;
  };
  const double sigma = std::sqrt(var), h_mu = 2e-3 * std::min(sigma, 0.05);
  const double d_mu = slope([&](double h) { return D::expectation(psi, j, mu + h, var); }, h_mu);
  const double d_var =
      slope([&](double h) { return D::expectation(psi, j, mu, var + h); }, 2e-3 * var);
  const double height = std::abs(got.value);
  return std::max(
      std::abs(got.d_mu - d_mu) /
          std::max(std::abs(got.d_mu), 1e-4 + height / std::min(sigma, 0.05)),
      std::abs(got.d_var - d_var) / std::max(std::abs(got.d_var), (1e-4 + height) / var));
}

/// The largest error of a density's divergence from N(mu, sigma0²) against quadrature of p log(p /
/// prior), and of its gradient against differences; `reach` says where the density ends.
template <class D, class Reach>
double worst_divergence(Reach reach) {
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    const double mu = random.uniform(), sigma0 = logarithmic(1e-2, 1, random.uniform());
    const double var = logarithmic(1e-5, 3, random.uniform()), far = reach(var);
    const auto got = D::divergence(mu, var, sigma0);
    const auto exact = integrate(
        [&](long double u) {  // about mu, so that the ends of a support are not rounded
          const auto p = static_cast<long double>(D::pdf(static_cast<double>(u), 0.0, var));
          const long double s = sigma0;
          const long double prior =
              -u * u / (2 * s * s) - std::log(s * std::sqrt(2 * std::numbers::pi_v<long double>));
          return p > 0 ? p * (std::log(p) - prior) : 0;
        },
        -far, far, around(0, std::sqrt(var)));
    worst = std::max(worst, exact.error(got.value));
    const auto slope = [](auto f, double h) {
      const double wide = (f(h) - f(-h)) / (2 * h), narrow = (f(h / 2) - f(-h / 2)) / h;
      return (4 * narrow - wide) / 3;
    };
    const double d_var =
        slope([&](double h) { return D::divergence(mu, var + h, sigma0).value; }, 1e-2 * var);
    worst = std::max(worst, std::abs(got.d_var - d_var) * var / (1 + std::abs(got.value)) * 1e-3);
    worst = std::max(worst, std::abs(got.d_mu));
    if (!(got.value >= -1e-15)) worst = 1;
  }
  return worst;
}

/// The largest error of float against double over random densities, measured by the value and by
/// its gradient times the length over which the density changes.
template <class D, class Psi>
double worst_float_error(const Psi& psi, Index functions) {
  const auto exact_psi = psi.template cast<double>();
  Random random(seed);
  double worst = 0;
  for (int i = 0; i < 1000; ++i) {
    const Index j = random.below(functions);
    const auto mu = static_cast<float>(random.uniform());
    const auto var = static_cast<float>(logarithmic(1e-4, 1, random.uniform()));
    const auto got = D::expectation_gradient(psi, j, mu, var);
    const auto exact =
        D::expectation_gradient(exact_psi, j, static_cast<double>(mu), static_cast<double>(var));
    const double scale = 1 + std::abs(exact.value) + std::abs(exact.d_mu) * std::sqrt(var) +
                         std::abs(exact.d_var) * var;
    worst = std::max({worst, std::abs(got.value - exact.value) / scale,
                      std::abs(got.d_mu - exact.d_mu) * std::sqrt(var) / scale,
                      std::abs(got.d_var - exact.d_var) * var / scale});
  }
  return worst;
}

}  // namespace infty::tests
