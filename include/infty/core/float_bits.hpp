// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

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

}  // namespace infty::math::detail
