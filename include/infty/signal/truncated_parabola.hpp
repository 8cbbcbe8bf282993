// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>
#include <limits>

#include <infty/core/config.hpp>
#include <infty/core/math.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>
#include <infty/signal/gauss_legendre.hpp>

namespace infty {

/// p(t) = (h^2 - (t - mu)^2) / (2 var) on [mu - h, mu + h] with h = (3 var / 2)^(1/3) and 0
/// elsewhere, the continuous sparsemax   [Martins et al. 2020, "Sparse and Continuous Attention
/// Mechanisms", section 2]. `var` is the paper's sigma^2; the density's variance is h^2 / 5.
struct TruncatedParabola {
  static constexpr const char* name = "truncated_parabola";  ///< in options and results

  /// Computes half the length of the support, (3 var / 2)^(1/3)   [Martins et al. 2020].
  template <std::floating_point T>
  INFTY_HOST_DEVICE static T half_width(T var) {
    return std::cbrt(T(1.5) * var);
  }

  /// Computes p(t), var > 0.
  template <std::floating_point T>
  INFTY_HOST_DEVICE static T pdf(T t, T mu, T var) {
    const T h = half_width(var), u = std::fabs(t - mu);
    return u < h ? (h - u) * (h + u) / (2 * var) : T(0);
  }

  /// Computes the probability of [a, b], a <= b.
  template <std::floating_point T>
  INFTY_HOST_DEVICE static T mass(T a, T b, T mu, T var) {
    const T h = half_width(var);
    const T x = clamped((a - mu) / h), y = clamped((b - mu) / h);
    return (y - x) * (3 - (x * x + x * y + y * y)) / 4;
  }

  /// KL(p || N(mu, sigma0²)), the paper's prior: E_p[log p] = log(3 / h) - 5/3, and E_p[(t - mu)²]
  /// is the variance h² / 5. Least, .046, where that is sigma0²: a parabola is no Gaussian.
  template <std::floating_point T>
  INFTY_HOST_DEVICE static Expectation<T> divergence(T, T var, T sigma0) {
    constexpr T constant = T(0.35088415520611576L);  // log 3 - 5/3 + log(2 pi) / 2
    const T ratio = half_width(var) / sigma0, square = ratio * ratio;
    return {constant - math::log(ratio) + square / 10, T(0), (square / 5 - 1) / (3 * var)};
  }

  /// E_p[psi_j].
  template <IntegrableBasis Psi>
  INFTY_HOST_DEVICE static typename Psi::Scalar expectation(const Psi& psi, Index j,
                                                            typename Psi::Scalar mu,
                                                            typename Psi::Scalar var) {
    return expectation_gradient(psi, j, mu, var).value;
  }

  /// Computes E_p[psi_j] and its gradient. With t = mu + h v the expectation is 3/4 of the integral
  /// of (1 - v^2) psi(mu + h v) over [-1, 1]; the ends contribute nothing to a derivative.
  template <IntegrableBasis Psi>
  INFTY_HOST_DEVICE static Expectation<typename Psi::Scalar> expectation_gradient(
      const Psi& psi, Index j, typename Psi::Scalar mu, typename Psi::Scalar var) {
    using T = typename Psi::Scalar;
    const T h = half_width(var), low = mu - h, high = mu + h;
    if constexpr (SmoothBasis<Psi>) {
      if (psi.smooth(j, low, high)) return smooth_gradient(psi, j, mu, var, h);
    }
    // Where the support is no longer told from mu, psi is the same all over it.
    if (h < 256 * std::numeric_limits<T>::epsilon()) return {psi(j, mu), T(0), T(0)};
    // From the end where psi is large: q = |t - end|, p = q (2 h - q) / (2 var). From mu, the
    // little that p is at the end would be the difference of h^2 and (t - mu)^2.
    const bool from_low = std::fabs(psi(j, low)) >= std::fabs(psi(j, high));
    const T side = from_low ? T(1) : T(-1);
    const Integrals<T> m = psi.integrals(j, low, high, from_low ? low : high);
    const T q = side * m.first, q2 = m.second;
    return {(2 * h * q - q2) / (2 * var), side * (q - h * m.zeroth) / var,
            (3 * q2 - 6 * h * q + 2 * h * h * m.zeroth) / (6 * var * var)};
  }

 private:
  template <class T>
  INFTY_HOST_DEVICE static T clamped(T v) {
    return v < -1 ? T(-1) : (v > 1 ? T(1) : v);
  }

  // By parts, until no weight changes its sign: d_var is h^2 / (16 var) times the integral of
  // (1 - v^2)^2 psi'', where that of (3 v^2 - 1) psi / (4 var) would cancel.
  template <SmoothBasis Psi>
  INFTY_HOST_DEVICE static Expectation<typename Psi::Scalar> smooth_gradient(
      const Psi& psi, Index j, typename Psi::Scalar mu, typename Psi::Scalar var,
      typename Psi::Scalar h) {
    using T = typename Psi::Scalar;
    Expectation<T> sum{T(0), T(0), T(0)};
    gauss_legendre<T>([&](T v, T w) {
      const T t = mu + h * v, bump = w * (1 - v * v);
      sum.value += bump * psi(j, t);
      sum.d_mu += bump * psi.derivative(j, t);
      sum.d_var += bump * (1 - v * v) * psi.second_derivative(j, t);
    });
    return {T(0.75) * sum.value, T(0.75) * sum.d_mu, h * h / (16 * var) * sum.d_var};
  }
};

static_assert(Density<TruncatedParabola> && DensityWithPrior<TruncatedParabola>);

}  // namespace infty
