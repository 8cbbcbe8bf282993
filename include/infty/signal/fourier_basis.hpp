// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/math.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/gauss_legendre.hpp>

namespace infty {

/// N harmonics of [0, 1]: see SineBasis and CosineBasis.
template <class T, bool Sine>
class FourierBasis {
 public:
  using Scalar = T;

  /// Makes a basis of n functions. @throws infty::ValueError if n < 1
  explicit FourierBasis(Index n) : size_(n) {
    require_at_least(Sine ? "SineBasis" : "CosineBasis", "N", n, 1);
  }

  /// Returns N, the number of functions.
  INFTY_HOST_DEVICE Index size() const { return size_; }

  /// Counts the periods in [0, 1]: j + 1 for the sines, j for the cosines.
  INFTY_HOST_DEVICE Index frequency(Index j) const { return Sine ? j + 1 : j; }
  /// Computes 2 pi frequency(j).
  INFTY_HOST_DEVICE T angular(Index j) const { return two_pi * T(frequency(j)); }

  /// Computes psi_j(t).
  INFTY_HOST_DEVICE T operator()(Index j, T t) const {
    const T angle = reduced(j, t);
    return Sine ? std::sin(angle) : std::cos(angle);
  }
  /// Computes psi_j'(t).
  INFTY_HOST_DEVICE T derivative(Index j, T t) const {
    const T angle = reduced(j, t);
    return angular(j) * (Sine ? std::cos(angle) : -std::sin(angle));
  }
  /// Computes psi_j''(t).
  INFTY_HOST_DEVICE T second_derivative(Index j, T t) const {
    return -angular(j) * angular(j) * (*this)(j, t);
  }
  /// Returns whether Gauss-Legendre integrates psi_j over [a, b] to rounding: about one period.
  INFTY_HOST_DEVICE bool smooth(Index j, T a, T b) const {
    return angular(j) * std::fabs(b - a) <= T(7);
  }

  /// Computes the integrals of (t - origin)^k psi_j(t) over [a, b], k = 0, 1, 2.
  INFTY_HOST_DEVICE Integrals<T> integrals(Index j, T a, T b, T origin = 0) const {
    if (!smooth(j, a, b)) {
      const Integrals<T> end = antiderivatives(j, b, b - origin);
      const Integrals<T> begin = antiderivatives(j, a, a - origin);
      return {end.zeroth - begin.zeroth, end.first - begin.first, end.second - begin.second};
    }
    const T half = (b - a) / 2;
    Integrals<T> sum{T(0), T(0), T(0)};
    gauss_legendre<T>([&](T v, T w) {
      const T step = half + half * v, u = (a - origin) + step;
      const T mass = w * half * (*this)(j, a + step);
      sum.zeroth += mass;
      sum.first += mass * u;
      sum.second += mass * u * u;
    });
    return sum;
  }

  /// E[psi_j] under N(mu, var) and its gradient: a harmonic keeps its phase and loses height,
  /// psi_j(mu) exp(-omega² var / 2).
  INFTY_HOST_DEVICE Expectation<T> gaussian_expectation(Index j, T mu, T var) const {
    const T omega = angular(j), decay = math::exp(T(-0.5) * omega * omega * var);
    const T value = (*this)(j, mu) * decay;
    return {value, derivative(j, mu) * decay, T(-0.5) * omega * omega * value};
  }

  /// The same basis in another scalar type.
  template <class U>
  FourierBasis<U, Sine> cast() const {
    return FourierBasis<U, Sine>(size_);
  }

 private:
  static constexpr T two_pi = T(6.28318530717958647692528676656L);

  // 2 pi f t less whole turns. Without the fused product, f t would carry its rounding error,
  // which in float and at f = 512 is 1e-4 of a turn.
  INFTY_HOST_DEVICE T reduced(Index j, T t) const {
    const T f = T(frequency(j));
    return two_pi * std::fma(f, t, -std::nearbyint(f * t));
  }

  // By parts, with p' = omega psi: p / omega, u p / omega + psi / omega^2,
  // u^2 p / omega + 2 u psi / omega^2 - 2 p / omega^3.
  INFTY_HOST_DEVICE Integrals<T> antiderivatives(Index j, T t, T u) const {
    const T angle = reduced(j, t), r = 1 / angular(j);
    const T psi = Sine ? std::sin(angle) : std::cos(angle);
    const T p = (Sine ? -std::cos(angle) : std::sin(angle)) * r;
    return {p, u * p + psi * r * r, u * u * p + 2 * r * r * (u * psi - p)};
  }

  Index size_;
};

/// psi_j(t) = sin(2 pi (j + 1) t), j = 0, ..., N-1.
template <class T>
using SineBasis = FourierBasis<T, true>;

/// psi_j(t) = cos(2 pi j t), j = 0, ..., N-1; the first is the constant 1.
template <class T>
using CosineBasis = FourierBasis<T, false>;

static_assert(SmoothBasis<SineBasis<float>> && GaussianExpectationBasis<CosineBasis<double>>);

}  // namespace infty
