// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/math.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/gauss_legendre.hpp>

/// Integrals of the standard normal density phi without cancellation.
namespace infty::detail {

/// Computes phi(z) = exp(-z^2 / 2) / sqrt(2 pi).
template <class T>
INFTY_HOST_DEVICE inline T normal_pdf(T z) {
  return math::exp(T(-0.5) * z * z) * T(0.39894228040143267793994606L);
}

/// Computes the normal probability of [x, y], x <= y: a difference of the two values of erf or erfc
/// that are small, so that it stays precise far from 0 and near it.
template <class T>
INFTY_HOST_DEVICE inline T normal_mass(T x, T y) {
  constexpr T r = T(0.70710678118654752440084436L);  // 1 / sqrt(2)
  if (x > T(-0.5) && y < T(0.5)) return T(0.5) * (std::erf(y * r) - std::erf(x * r));
  if (x > 0) return T(0.5) * (std::erfc(x * r) - std::erfc(y * r));
  if (y < 0) return T(0.5) * (std::erfc(-y * r) - std::erfc(-x * r));
  return T(0.5) * (std::erf(y * r) - std::erf(x * r));
}

/// The normal probability of [z - h, z + h] for h <= 1 / 32 and |z| h <= 1 / 4, as 2 h phi(z) (1 +
/// He_2(z) h^2 / 3! + He_4(z) h^4 / 5! + ...): one exponential where erf would take two, and no
/// difference of close numbers. To 5e-11 of itself, and to rounding where |z| h <= 1 / 32, too.
template <class T>
INFTY_HOST_DEVICE inline T narrow_normal_mass(T z, T h) {
  const T z2 = z * z, h2 = h * h;
  const T he2 = z2 - 1, he4 = (z2 - 6) * z2 + 3, he6 = ((z2 - 15) * z2 + 45) * z2 - 15;
  return 2 * h * normal_pdf(z) * (1 + h2 / 6 * (he2 + h2 / 20 * (he4 + h2 / 42 * he6)));
}

/// E_k = the integral of u^k phi(x + u) / phi(x) over [0, infinity), for x >= 3. They obey
/// E_{k+1} = k E_{k-1} - x E_k, which loses all digits upwards but none downwards: the ratios are
/// the continued fraction E_k / E_{k-1} = k / (x + (k+1) / (x + ...))   [Gautschi 1961].
template <class T>
INFTY_HOST_DEVICE inline Integrals<T> normal_tail(T x) {
  const int terms = 12 + static_cast<int>(500 / (x * x));
  T ratio = 0, second = 0;
  for (int k = terms; k >= 1; --k) {
    ratio = T(k) / (x + ratio);
    if (k == 2) second = ratio;
  }
  const T zeroth = T(1) / (x + ratio);
  return {zeroth, zeroth * ratio, zeroth * ratio * second};
}

/// Whether twelve Gauss-Legendre points integrate phi over [x, x + length] to rounding.
template <class T>
INFTY_HOST_DEVICE inline bool normal_smooth(T x, T length) {
  const T distant = std::fmax(std::fabs(x), std::fabs(x + length));
  return length <= T(2.4) && distant * length <= T(6);
}

/// The integrals of (z - origin)^k phi(z) over z in [x, x + length], where |x| <= |x + length| and
/// z - origin is `from_end` at x and `from_peak` at 0. Short pieces by Gauss-Legendre, where
/// differences would cancel; tails from their near end; the rest by erf and phi. Ends may be
/// infinite.
template <class T>
INFTY_HOST_DEVICE inline Integrals<T> normal_integrals(T x, T length, T from_end, T from_peak) {
  constexpr T beyond = T(100);  // phi is 0 there in double
  if (x > beyond) return {T(0), T(0), T(0)};
  if (normal_smooth(x, length)) {
    const T half = length / 2;
    Integrals<T> sum{T(0), T(0), T(0)};
    gauss_legendre<T>([&](T v, T w) {
      const T u = half + half * v;
      const T mass = w * half * normal_pdf(x + u);
      sum.zeroth += mass;
      sum.first += mass * (from_end + u);
      sum.second += mass * (from_end + u) * (from_end + u);
    });
    return sum;
  }
  // Not fmin and fmax, which would lose a NaN.
  length = length > 2 * beyond ? 2 * beyond : length;
  x = x < -beyond ? -beyond : x;
  const T y = x + length > beyond ? beyond : x + length;
  const T close = normal_pdf(x), distant = normal_pdf(y);
  Integrals<T> m;
  T from = from_peak;
  if (x >= 3) {
    const Integrals<T> e = normal_tail(x), f = normal_tail(y);
    m.zeroth = close * e.zeroth - distant * f.zeroth;
    m.first = close * e.first - distant * (f.first + length * f.zeroth);
    m.second = close * e.second - distant * (f.second + length * (2 * f.first + length * f.zeroth));
    from = from_end;
  } else {
    m.zeroth = normal_mass(x, y);
    m.first = close - distant;
    m.second = m.zeroth + x * close - y * distant;
  }
  return {m.zeroth, m.first + from * m.zeroth, m.second + from * (2 * m.first + from * m.zeroth)};
}

}  // namespace infty::detail
