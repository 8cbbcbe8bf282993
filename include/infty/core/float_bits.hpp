// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <infty/core/config.hpp>

/// Begins a function whose sums and products are taken in the order in which they are written,
/// -ffast-math or not. GCC has no such word: there `as_rounded` says it of a value.
#if defined(__clang__) && !defined(__CUDACC__)
#define INFTY_IN_ORDER _Pragma("clang fp reassociate(off)")
#else
#define INFTY_IN_ORDER
#endif

namespace infty::math::detail {

/// How float and double stand in memory.
template <class T>
struct FloatBits {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  static constexpr bool single = std::is_same_v<T, float>;
  using Bits = std::conditional_t<single, std::int32_t, std::int64_t>;
  using Unsigned = std::make_unsigned_t<Bits>;
  static constexpr int mantissa = single ? 23 : 52, bias = single ? 127 : 1023;
  /// 1.5 * 2^mantissa: the nearest integer to what is added stands in the low bits of the sum.
  static constexpr T magic = single ? T(12582912.0) : T(6755399441055744.0);
};

#if defined(__ASSOCIATIVE_MATH__) && !defined(__clang__) && !defined(__CUDACC__)
/// 0, which no compiler knows.
template <class Bits>
inline const Bits nothing = [] {
  const volatile Bits zero = 0;
  return zero;
}();
#endif

/// Returns x as it is rounded: under -ffast-math a compiler takes (x + c) - c for x. What it does
/// not see through are sums of integers; GCC's __builtin_assoc_barrier is lost where it makes
/// vector code.
template <class T>
INFTY_HOST_DEVICE inline T as_rounded(T x) {
#if defined(__ASSOCIATIVE_MATH__) && !defined(__clang__) && !defined(__CUDACC__)
  using Unsigned = typename FloatBits<T>::Unsigned;
  return std::bit_cast<T>(std::bit_cast<Unsigned>(x) + nothing<Unsigned>);
#else
  return x;
#endif
}

}  // namespace infty::math::detail
