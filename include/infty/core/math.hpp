// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/float_bits.hpp>
#include <infty/core/log.hpp>

/// Elementary functions without branches, so that a compiler turns a loop over them into vector
/// code, and the same on host and device.
namespace infty::math {

namespace detail {

/// e^x = value 2^exponent, value about 1; the exponent is whole and stands in the low bits.
template <class T>
struct ScaledExp {
  T value;
  typename FloatBits<T>::Bits exponent;
};

template <class T>
INFTY_HOST_DEVICE inline ScaledExp<T> scaled_exp(T x) {
  INFTY_IN_ORDER
  using Bits = typename FloatBits<T>::Bits;
  constexpr bool single = FloatBits<T>::single;
  constexpr T log2e = T(1.44269504088896340736L);
  // ln 2 in two parts, the first exact in few bits, so that n * ln2_high is exact.
  constexpr T ln2_high = single ? T(0.693359375L) : T(6.93145751953125e-1L);
  constexpr T ln2_low = single ? T(-2.12194440054690583e-4L) : T(1.42860682030941723212e-6L);
  constexpr T magic = FloatBits<T>::magic;
  const T shifted = as_rounded(x * log2e + magic);
  const T n = shifted - magic;
  const T r = as_rounded(x - n * ln2_high) - n * ln2_low;
  T p;
  if constexpr (single) {
    p = T(1.0 / 5040);
  } else {
    p = T(1.0 / 6227020800.0);
    p = p * r + T(1.0 / 479001600.0);
    p = p * r + T(1.0 / 39916800.0);
    p = p * r + T(1.0 / 3628800.0);
    p = p * r + T(1.0 / 362880.0);
    p = p * r + T(1.0 / 40320.0);
    p = p * r + T(1.0 / 5040.0);
  }
  p = p * r + T(1.0 / 720);
  p = p * r + T(1.0 / 120);
  p = p * r + T(1.0 / 24);
  p = p * r + T(1.0 / 6);
  p = p * r + T(0.5);
  p = p * r + T(1);
  p = p * r + T(1);
  return {p, std::bit_cast<Bits>(shifted)};
}

}  // namespace detail

/// Computes e^x to 2 ulp over the whole range, denormal results included; of inf and NaN as
/// std::exp.
template <class T>
INFTY_HOST_DEVICE inline T exp(T x) {
  INFTY_IN_ORDER
  using Traits = detail::FloatBits<T>;
  constexpr T low = Traits::single ? T(-110) : T(-750), high = Traits::single ? T(90) : T(711);
  const auto e = detail::scaled_exp(x < low ? low : (x > high ? high : x));
  // 2^n in two factors: n may lie outside the exponents of normal numbers.
  const auto k = e.exponent - std::bit_cast<typename Traits::Bits>(Traits::magic);
  const auto half = k >> 1;
  const T first = std::bit_cast<T>((half + Traits::bias) << Traits::mantissa);
  const T second = std::bit_cast<T>((k - half + Traits::bias) << Traits::mantissa);
  const T y = detail::as_rounded(e.value * first) * second;
  return x == x ? y : x;
}

/// Computes e^x for x <= 0 (and as far as 1) to 2 ulp, in 60 % of the time of `exp`; 0 where e^x is
/// near or below the smallest normal number, as in `sigmoid`; NaN of NaN.
template <class T>
INFTY_HOST_DEVICE inline T exp_decay(T x) {
  using Traits = detail::FloatBits<T>;
  using Unsigned = typename Traits::Unsigned;
  constexpr T low = Traits::single ? T(-87.3) : T(-708.3);
  const auto e = detail::scaled_exp(x);
  // The shift drops all bits but those of the exponent.
  const T scale = std::bit_cast<T>((static_cast<Unsigned>(e.exponent) << Traits::mantissa) +
                                   (static_cast<Unsigned>(Traits::bias) << Traits::mantissa));
  const T y = e.value * scale;
  return x < low ? T(0) : y;
}

/// Computes e^x for x <= 0 as `exp_decay`, and 0 where the square of that would be no normal number
/// (x < -43.6 in float, -354.1 in double): of a score less the largest one, for weights that are
/// factors of products. Such a weight is lost in rounding beside the largest one's, and processors
/// take ten times as long for what products make of it, below the least normal number.
template <class T>
INFTY_HOST_DEVICE inline T exp_of_share(T x) {
  constexpr T low = detail::FloatBits<T>::single ? T(-43.6) : T(-354.1);
  const T y = exp_decay(x);
  return x < low ? T(0) : y;
}

/// Computes 1 / (1 + e^-x) to 4 ulp, without overflow; 0 where that is near or below the smallest
/// normal number (x < -87.3 in float, -708.3 in double).
template <class T>
INFTY_HOST_DEVICE inline T sigmoid(T x) {
  const T e = exp_decay(x < 0 ? x : -x);  // in [0, 1]
  return (x < 0 ? e : T(1)) / (T(1) + e);
}

/// Computes log(1 + e^x) to 4 ulp, without overflow; 0 where that is near or below the smallest
/// normal number (x < -87.3 in float, -708.3 in double).
template <class T>
INFTY_HOST_DEVICE inline T softplus(T x) {
  const T e = exp_decay(x < 0 ? x : -x);  // in [0, 1]
  // log(1 + e) = 2 atanh(s), whose first term is 2 s = e - s e; 3 s <= 1.
  const T s = e / (T(2) + e), z = s * s;
  T series;
  if constexpr (detail::FloatBits<T>::single)
    series =
        detail::polynomial(z, 0.33333337811605071925, 0.19999438825587868404,
                           0.14308443540569638188, 0.1071381733348235895, 0.12150508720290422551);
  else
    series = detail::polynomial(
        z, 0.33333333333333333333, 0.20000000000000000151, 0.14285714285714242887,
        0.11111111111117255982, 0.090909090903866965345, 0.076923077210213199824,
        0.066666655917102072994, 0.058823812122198830296, 0.052626272239161999419,
        0.047690343768779445721, 0.042800323115786295139, 0.044425281390066031148,
        0.018452739065233314631, 0.07772744923088425802);
  return (x > 0 ? x : T(0)) + (e - s * (e - T(2) * z * series));
}

}  // namespace infty::math
