// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <limits>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/float_bits.hpp>
#include <infty/core/number.hpp>

/// Logarithms without branches, so that a compiler turns a loop over them into vector code, and the
/// same on host and device.
namespace infty::math {

namespace detail {

/// Computes c0 + c1 x + c2 x² + ...
template <class T>
INFTY_HOST_DEVICE constexpr T polynomial(T, double c) {
  return static_cast<T>(c);
}
template <class T, class... Rest>
INFTY_HOST_DEVICE constexpr T polynomial(T x, double c, Rest... rest) {
  return static_cast<T>(c) + x * polynomial(x, rest...);
}

/// A number as 2^exponent times a factor in [sqrt(1/2), sqrt(2)).
template <class T>
struct Binary {
  T exponent, factor;
};

/// Of x > 0 and finite.
template <class T>
INFTY_HOST_DEVICE inline Binary<T> binary(T x) {
  using Traits = FloatBits<T>;
  using Bits = typename Traits::Bits;
  constexpr int mantissa = Traits::mantissa;
  constexpr T magic = Traits::magic;
  constexpr T scale = Traits::single ? T(0x1p25) : T(0x1p54);
  const bool denormal = x < (std::numeric_limits<T>::min)();
  // Unsigned, for the bits of a negative number may wrap around.
  using Unsigned = typename Traits::Unsigned;
  const Unsigned bits = std::bit_cast<Unsigned>(x * (denormal ? scale : T(1)));
  const Bits k =
      static_cast<Bits>(bits - std::bit_cast<Unsigned>(T(0.70710678118654752440L))) >> mantissa;
  const T exponent = std::bit_cast<T>(k + std::bit_cast<Bits>(magic)) - magic;
  return {exponent - (denormal ? T(mantissa + 2) : T(0)),
          std::bit_cast<T>(bits - (static_cast<Unsigned>(k) << mantissa))};
}

/// exponent ln 2 + log(1 + f) + rest: with s = f / (2 + f), log(1 + f) = 2 atanh(s), as the
/// C libraries that come from Sun's compute it.
template <class T>
INFTY_HOST_DEVICE inline T log_of(T exponent, T f, T rest) {
  INFTY_IN_ORDER
  constexpr bool single = std::is_same_v<T, float>;
  // ln 2 in two parts, the first exact in few bits, so that exponent * ln2_high is exact.
  constexpr T ln2_high = single ? T(6.9313812256e-01) : T(6.93147180369123816490e-01);
  constexpr T ln2_low = single ? T(9.0580006145e-06) : T(1.90821492927058770002e-10);
  const T s = f / (T(2) + f), z = s * s, half = T(0.5) * f * f;
  T series;
  if constexpr (single)
    series = z * polynomial(z, 0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841);
  else
    series =
        z * polynomial(z, 6.666666666666735130e-01, 3.999999999940941908e-01,
                       2.857142874366239149e-01, 2.222219843214978396e-01, 1.818357216161805012e-01,
                       1.531383769920937332e-01, 1.479819860511658591e-01);
  return exponent * ln2_high -
         (as_rounded(half - (s * (half + series) + (exponent * ln2_low + rest))) - f);
}

}  // namespace detail

/// Computes the natural logarithm of x to 1 ulp over the whole range; of 0, negative numbers, inf
/// and NaN as std::log.
template <class T>
INFTY_HOST_DEVICE inline T log(T x) {
  const detail::Binary<T> parts = detail::binary(x);
  const T y = detail::log_of(parts.exponent, parts.factor - T(1), T(0));
  const T special = x == T(0) ? -infinity<T> : (x > T(0) ? x : not_a_number<T>);
  return x > T(0) && x < infinity<T> ? y : special;
}

/// Computes log(1 + x) to 3 ulp over the whole range; of x <= -1, inf and NaN as std::log1p.
template <class T>
INFTY_HOST_DEVICE inline T log1p(T x) {
  INFTY_IN_ORDER
  const T u = detail::as_rounded(T(1) + x);
  const detail::Binary<T> parts = detail::binary(u);
  // Where the factor is u, f is x; elsewhere `lost` is what rounding took from
  // u. A compiler makes a branch of a choice between results, but not of one between operands.
  const bool whole = parts.exponent == T(0), large = parts.exponent > T(0);
  const T f = (whole ? x : parts.factor) - (whole ? T(0) : T(1));
  const T lost = (large ? T(1) : x) - detail::as_rounded(u - (large ? x : T(1)));
  const T y = detail::log_of(parts.exponent, f, lost * (whole ? T(0) : T(1)) / u);
  const T finite = x < infinity<T> ? (x == T(0) ? x : y) : x;
  return x > T(-1) ? finite : (x == T(-1) ? -infinity<T> : not_a_number<T>);
}

}  // namespace infty::math
