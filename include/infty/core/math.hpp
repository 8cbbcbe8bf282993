// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <infty/core/config.hpp>

/// Elementary functions without branches, so that a compiler turns a loop over them into vector
/// code, and the same on host and device.
namespace infty::math {

/// e^x to 2 ulp over the whole range, denormal results included; inf and NaN as std::exp.
template <class T>
INFTY_HOST_DEVICE inline T exp(T x) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  using Bits = std::conditional_t<std::is_same_v<T, float>, std::int32_t, std::int64_t>;
  constexpr bool single = std::is_same_v<T, float>;
  constexpr T low = single ? T(-110) : T(-750), high = single ? T(90) : T(711);
  constexpr T log2e = T(1.44269504088896340736L);
  // ln 2 in two parts, the first exact in few bits, so that n * ln2_high is exact.
  constexpr T ln2_high = single ? T(0.693359375L) : T(6.93145751953125e-1L);
  constexpr T ln2_low = single ? T(-2.12194440054690583e-4L) : T(1.42860682030941723212e-6L);
  // Adding 1.5 * 2^digits leaves the nearest integer in the low bits.
  constexpr T magic = single ? T(12582912.0) : T(6755399441055744.0);
  constexpr int mantissa = single ? 23 : 52, bias = single ? 127 : 1023;

  const T clamped = x < low ? low : (x > high ? high : x);
  const T shifted = clamped * log2e + magic;
  const T n = shifted - magic;
  const T r = (clamped - n * ln2_high) - n * ln2_low;
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
  // 2^n in two factors: n may lie outside the exponents of normal numbers.
  const Bits k = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(magic);
  const Bits half = k >> 1;
  const T first = std::bit_cast<T>((half + bias) << mantissa);
  const T second = std::bit_cast<T>((k - half + bias) << mantissa);
  const T y = p * first * second;
  return x == x ? y : x;
}

/// 1 / (1 + e^-x), without overflow.
template <class T>
INFTY_HOST_DEVICE inline T sigmoid(T x) {
  const T e = exp(x < 0 ? x : -x);  // in (0, 1]
  return (x < 0 ? e : T(1)) / (T(1) + e);
}

/// log(1 + e^x), without overflow.
template <class T>
INFTY_HOST_DEVICE inline T softplus(T x) {
  return (x > 0 ? x : T(0)) + std::log1p(exp(x < 0 ? x : -x));
}

}  // namespace infty::math
