// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/math.hpp>

/// The hyperbolic tangent without branches, so that a compiler turns a loop over it into vector
/// code, and the same on host and device.
namespace infty::math {

namespace detail {

/// tanh(x) for |x| <= 0.625, which is x (1 + x² p(x²)); in double p is a fraction  [Moshier,
/// Cephes].
template <class T>
INFTY_HOST_DEVICE inline T tanh_within(T x) {
  const T z = x * x;
  T p;
  if constexpr (FloatBits<T>::single)
    p = polynomial(z, -3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2,
                   -5.70498872745e-3);
  else
    p = polynomial(z, -1.61468768441708447952e3, -9.92877231001918586564e1,
                   -9.64399179425052238628e-1) /
        polynomial(z, 4.84406305325125486048e3, 2.23548839060100448583e3, 1.12811678491632931402e2,
                   1.0);
  return x * (T(1) + z * p);
}

}  // namespace detail

/// The hyperbolic tangent to 3 ulp, without overflow.
template <class T>
INFTY_HOST_DEVICE inline T tanh(T x) {
  const T a = x < T(0) ? -x : x;
  const T distant = T(1) - T(2) / (T(1) + exp(T(2) * a));
  return a < T(0.625) ? detail::tanh_within(x) : (x < T(0) ? -distant : distant);
}

}  // namespace infty::math
