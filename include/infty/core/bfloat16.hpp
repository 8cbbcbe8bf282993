// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

#include <infty/core/config.hpp>

namespace infty::detail {

/// A float rounded to bfloat16, to the nearest, ties to even: the upper half of its bits, with
/// zeros below. What is not a number stays so. On computers that keep floats as IEEE 754 has them.
INFTY_HOST_DEVICE constexpr std::uint32_t bfloat16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool number = (bits & 0x7fffffffu) <= 0x7f800000u;
  // Half of the last place, less one where what stays is even: a carry rounds up.
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return (number ? rounded : bits | 0x00400000u) & 0xffff0000u;
}

/// The same as a float.
INFTY_HOST_DEVICE constexpr float to_bfloat16(float x) {
  return std::bit_cast<float>(bfloat16_bits(x));
}

/// Two floats rounded to bfloat16 in one word, the first in its lower half.
INFTY_HOST_DEVICE constexpr std::uint32_t bfloat16_pair(float first, float second) {
  return bfloat16_bits(first) >> 16 | bfloat16_bits(second);
}

}  // namespace infty::detail
