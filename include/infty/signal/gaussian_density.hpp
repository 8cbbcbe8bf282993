// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>

#include <infty/core/config.hpp>
#include <infty/core/math.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/normal_integrals.hpp>
#include <infty/signal/power_basis.hpp>

namespace infty {

/// A basis of a user's own that knows its expectation under N(mu, var).
template <class P>
concept HasGaussianExpectation = Basis<P> && requires(const P& psi, Index j, typename P::Scalar t) {
  { psi.gaussian_expectation(j, t, t) } -> std::same_as<Expectation<typename P::Scalar>>;
};

/// p = N(mu, var), the continuous softmax: the density of largest entropy under a linear penalty
/// of location and square   [Martins et al. 2020, "Sparse and Continuous Attention Mechanisms",
/// section 2; Martins et al. 2022, Eq. 9-11].
struct GaussianDensity {
  static constexpr const char* name = "gaussian";

  /// p(t) of N(mu, var), var > 0.
  template <std::floating_point T>
  INFTY_HOST_DEVICE static T pdf(T t, T mu, T var) {
    const T sigma = std::sqrt(var);
    return detail::normal_pdf((t - mu) / sigma) / sigma;
  }

  /// The probability of [a, b], a <= b, with all digits also far from mu.
  template <std::floating_point T>
  INFTY_HOST_DEVICE static T mass(T a, T b, T mu, T var) {
    const T sigma = std::sqrt(var);
    return detail::normal_mass((a - mu) / sigma, (b - mu) / sigma);
  }

  /// KL(N(mu, var) || N(mu, sigma0²)) = ½ (var / σ0² - log(var / σ0²) - 1)
  /// [Martins et al. 2022, Eq. 20, 21; their log(σ / σ0) is a misprint for the ratio of variances].
  template <std::floating_point T>
  INFTY_HOST_DEVICE static Expectation<T> divergence(T, T var, T sigma0) {
    const T inverse = T(1) / (sigma0 * sigma0), ratio = var * inverse;
    return {T(0.5) * (ratio - math::log(ratio) - T(1)), T(0), T(0.5) * (inverse - T(1) / var)};
  }

  /// E_p[psi_j].
  template <class Psi>
    requires DensityOver<GaussianDensity, Psi>
  INFTY_HOST_DEVICE static typename Psi::Scalar expectation(const Psi& psi, Index j,
                                                            typename Psi::Scalar mu,
                                                            typename Psi::Scalar var) {
    return expectation_gradient(psi, j, mu, var).value;
  }

  /// The product of two Gaussians integrates to a Gaussian: N(mu; centre, width^2 + var).
  template <class T>
  INFTY_HOST_DEVICE static Expectation<T> expectation_gradient(const GaussianBasis<T>& psi, Index j,
                                                               T mu, T var) {
    return expectation_gradient_at(psi, j, mu, inverse_spread(psi, j, var));
  }

  /// 1 / sqrt(width² + var), what the expectations of all functions of psi_j's width share.
  template <class T>
  INFTY_HOST_DEVICE static T inverse_spread(const GaussianBasis<T>& psi, Index j, T var) {
    const T s = psi.width(j);
    return 1 / std::sqrt(s * s + var);
  }

  /// `expectation_gradient` where the inverse spread is known.
  template <class T>
  INFTY_HOST_DEVICE static Expectation<T> expectation_gradient_at(const GaussianBasis<T>& psi,
                                                                  Index j, T mu, T r) {
    constexpr T peak = T(0.39894228040143267793994606L);  // 1 / sqrt(2 pi)
    const T z = (mu - psi.centre(j)) * r;
    const T value = math::exp_decay(T(-0.5) * z * z) * (peak * r);
    return {value, -value * z * r, value * (z * z - 1) * r * r / 2};
  }

  /// How far from mu a function's centre must lie for its expectation to be `tail` times its
  /// largest value, for the widest functions; with tail in (0, 1).
  template <class T>
  INFTY_HOST_DEVICE static T reach(const GaussianBasis<T>& psi, T var, T tail) {
    T widest = 0;
    for (Index j = 0; j < psi.widths(); ++j) widest = psi.width(j) > widest ? psi.width(j) : widest;
    return std::sqrt(-2 * std::log(tail) * (widest * widest + var));
  }

  /// The moments of a normal variable: m_j = mu m_{j-1} + (j - 1) var m_{j-2}, of terms with the
  /// same sign, and d m_j = j m_{j-1} dmu + j (j - 1) / 2 m_{j-2} dvar.
  template <class T>
  INFTY_HOST_DEVICE static Expectation<T> expectation_gradient(const PowerBasis<T>&, Index j, T mu,
                                                               T var) {
    T moment = 1, last = 0, before = 0;  // m_i, m_{i-1}, m_{i-2}
    for (Index i = 1; i <= j; ++i) {
      const T next = mu * moment + T(i - 1) * var * last;
      before = last;
      last = moment;
      moment = next;
    }
    return {moment, T(j) * last, T(j) * T(j - 1) / 2 * before};
  }

  /// A harmonic keeps its phase and loses height: psi_j(mu) exp(-omega^2 var / 2).
  template <class T, bool Sine>
  INFTY_HOST_DEVICE static Expectation<T> expectation_gradient(const FourierBasis<T, Sine>& psi,
                                                               Index j, T mu, T var) {
    const T omega = psi.angular(j), decay = math::exp(T(-0.5) * omega * omega * var);
    const T value = psi(j, mu) * decay;
    return {value, psi.derivative(j, mu) * decay, T(-0.5) * omega * omega * value};
  }

  /// A user's basis brings its own: `psi.gaussian_expectation(j, mu, var)`.
  template <HasGaussianExpectation Psi>
  INFTY_HOST_DEVICE static Expectation<typename Psi::Scalar> expectation_gradient(
      const Psi& psi, Index j, typename Psi::Scalar mu, typename Psi::Scalar var) {
    return psi.gaussian_expectation(j, mu, var);
  }
};

static_assert(Density<GaussianDensity> && DensityWithPrior<GaussianDensity>);
static_assert(DensityOver<GaussianDensity, GaussianBasis<float>>);
static_assert(DensityOver<GaussianDensity, PowerBasis<double>>);
static_assert(DensityOver<GaussianDensity, SineBasis<float>>);
static_assert(DensityOver<GaussianDensity, CosineBasis<double>>);

}  // namespace infty
