// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>

#include <infty/core/config.hpp>
#include <infty/core/math.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>
#include <infty/signal/normal_integrals.hpp>

namespace infty {

/// p = N(mu, var), the continuous softmax: the density of largest entropy under a linear penalty
/// of location and square   [Martins et al. 2020, "Sparse and Continuous Attention Mechanisms",
/// section 2; Martins et al. 2022, Eq. 9-11].
struct GaussianDensity {
  static constexpr const char* name = "gaussian";  ///< in options and results

  /// Computes p(t) of N(mu, var), var > 0.
  template <std::floating_point T>
  INFTY_HOST_DEVICE static T pdf(T t, T mu, T var) {
    const T sigma = std::sqrt(var);
    return detail::normal_pdf((t - mu) / sigma) / sigma;
  }

  /// Computes the probability of [a, b], a <= b, with all digits also far from mu, and of ranges
  /// that are narrow there.
  template <std::floating_point T>
  INFTY_HOST_DEVICE static T mass(T a, T b, T mu, T var) {
    const T sigma = std::sqrt(var), x = (a - mu) / sigma, half = (b - a) / (2 * sigma);
    constexpr T narrow = T(1) / 32;
    if (half <= narrow && std::fabs(x + half) * half <= narrow)
      return detail::narrow_normal_mass(x + half, half);
    return detail::normal_mass(x, (b - mu) / sigma);
  }

  /// KL(N(mu, var) || N(mu, sigma0²)) = ½ (var / σ0² - log(var / σ0²) - 1)
  /// [Martins et al. 2022, Eq. 20, 21; their log(σ / σ0) is a misprint for the ratio of variances].
  template <std::floating_point T>
  INFTY_HOST_DEVICE static Expectation<T> divergence(T, T var, T sigma0) {
    const T inverse = T(1) / (sigma0 * sigma0), ratio = var * inverse;
    return {T(0.5) * (ratio - math::log(ratio) - T(1)), T(0), T(0.5) * (inverse - T(1) / var)};
  }

  /// E_p[psi_j].
  template <GaussianExpectationBasis Psi>
  INFTY_HOST_DEVICE static typename Psi::Scalar expectation(const Psi& psi, Index j,
                                                            typename Psi::Scalar mu,
                                                            typename Psi::Scalar var) {
    return psi.gaussian_expectation(j, mu, var).value;
  }

  /// E_p[psi_j] and its gradient, which the basis knows.
  template <GaussianExpectationBasis Psi>
  INFTY_HOST_DEVICE static Expectation<typename Psi::Scalar> expectation_gradient(
      const Psi& psi, Index j, typename Psi::Scalar mu, typename Psi::Scalar var) {
    return psi.gaussian_expectation(j, mu, var);
  }

  /// What the expectations of all functions of psi_j's width share, if the basis has few widths.
  template <SpreadBasis Psi>
  INFTY_HOST_DEVICE static typename Psi::Scalar inverse_spread(const Psi& psi, Index j,
                                                               typename Psi::Scalar var) {
    return psi.inverse_spread(j, var);
  }

  /// `expectation_gradient` where that is known.
  template <SpreadBasis Psi>
  INFTY_HOST_DEVICE static Expectation<typename Psi::Scalar> expectation_gradient_at(
      const Psi& psi, Index j, typename Psi::Scalar mu, typename Psi::Scalar inverse_spread) {
    return psi.gaussian_expectation_at(j, mu, inverse_spread);
  }

  /// Computes the same of a function whose centre is known, too, if the basis can by that alone.
  template <SpreadBasis Psi>
    requires requires(const Psi& psi, typename Psi::Scalar t) {
      psi.gaussian_expectation_about(t, t, t);
      psi.centre(Index{});
    }
  INFTY_HOST_DEVICE static Expectation<typename Psi::Scalar> expectation_gradient_about(
      const Psi& psi, typename Psi::Scalar centre, typename Psi::Scalar mu,
      typename Psi::Scalar inverse_spread) {
    return psi.gaussian_expectation_about(centre, mu, inverse_spread);
  }

  /// How far from mu a function's centre must lie for its expectation to be `tail` times its
  /// largest value, for the widest functions, if the basis can tell; with tail in (0, 1).
  template <LocalBasis Psi>
  INFTY_HOST_DEVICE static typename Psi::Scalar reach(const Psi& psi, typename Psi::Scalar var,
                                                      typename Psi::Scalar tail) {
    return psi.gaussian_reach(var, tail);
  }
};

static_assert(Density<GaussianDensity> && DensityWithPrior<GaussianDensity>);

}  // namespace infty
