// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/gauss_legendre.hpp>

namespace infty {

/// The powers psi_j(t) = t^j, j = 0, ..., N-1   [Martins et al. 2020, section 3].
template <class T>
class PowerBasis {
 public:
  using Scalar = T;

  /// Makes a basis of n functions. @throws infty::ValueError if n < 1
  explicit PowerBasis(Index n) : size_(n) { require_at_least("PowerBasis", "N", n, 1); }

  /// Returns N, the number of functions.
  INFTY_HOST_DEVICE Index size() const { return size_; }

  /// Computes t^j.
  INFTY_HOST_DEVICE T operator()(Index j, T t) const { return std::pow(t, T(j)); }
  /// Computes j t^(j-1).
  INFTY_HOST_DEVICE T derivative(Index j, T t) const {
    return j < 1 ? T(0) : T(j) * std::pow(t, T(j - 1));
  }
  /// Computes j (j-1) t^(j-2).
  INFTY_HOST_DEVICE T second_derivative(Index j, T t) const {
    return j < 2 ? T(0) : T(j) * T(j - 1) * std::pow(t, T(j - 2));
  }
  /// Returns whether Gauss-Legendre integrates t^j over [a, b] to rounding: exactly up to t^21,
  /// times a square, and where t^j changes little.
  INFTY_HOST_DEVICE bool smooth(Index j, T a, T b) const { return pieces(j, a, b) == 1; }

  /// Computes the integrals of (t - origin)^k t^j over [a, b], k = 0, 1, 2. Antiderivatives cancel
  /// where origin and ends are close together, Gauss-Legendre on few pieces does not.
  INFTY_HOST_DEVICE Integrals<T> integrals(Index j, T a, T b, T origin = 0) const {
    const Index count = pieces(j, a, b);
    const T half = (b - a) / T(2 * count), from = a - origin;
    Integrals<T> sum{T(0), T(0), T(0)};
    for (Index piece = 0; piece < count; ++piece) {
      gauss_legendre<T>([&](T v, T w) {
        const T step = half * (T(2 * piece + 1) + v), u = from + step;
        const T mass = w * half * (*this)(j, a + step);
        sum.zeroth += mass;
        sum.first += mass * u;
        sum.second += mass * u * u;
      });
    }
    return sum;
  }

  /// E[psi_j] under N(mu, var) and its gradient, the moments of a normal variable:
  /// m_j = mu m_{j-1} + (j - 1) var m_{j-2}, of terms with the same sign, and
  /// d m_j = j m_{j-1} dmu + j (j - 1) / 2 m_{j-2} dvar.
  INFTY_HOST_DEVICE Expectation<T> gaussian_expectation(Index j, T mu, T var) const {
    T moment = 1, last = 0, before = 0;  // m_i, m_{i-1}, m_{i-2}
    for (Index i = 1; i <= j; ++i) {
      const T next = mu * moment + T(i - 1) * var * last;
      before = last;
      last = moment;
      moment = next;
    }
    return {moment, T(j) * last, T(j) * T(j - 1) / 2 * before};
  }

  /// The same basis in another scalar type.
  template <class U>
  PowerBasis<U> cast() const {
    return PowerBasis<U>(size_);
  }

 private:
  INFTY_HOST_DEVICE static Index pieces(Index j, T a, T b) {
    const T largest = std::fmax(std::fabs(a), std::fabs(b));
    if (j <= 21 || !(largest > 0)) return 1;
    // |t^j| falls by less than e^8 over a piece.
    return 1 + static_cast<Index>(T(j) * std::fmin(std::fabs(b - a) / largest, T(2)) / 8);
  }

  Index size_;
};

static_assert(SmoothBasis<PowerBasis<float>> && GaussianExpectationBasis<PowerBasis<double>>);

}  // namespace infty
