// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

#include <infty/core/config.hpp>

namespace infty {

namespace detail {

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

}  // namespace detail

/// A number in bfloat16: the sign, the exponent and 8 of the 24 bits of a float, in two bytes. It
/// is what numbers are stored as, such as the keys of a memory; what is computed from them is
/// computed in float or double, to which it turns exactly.
class BFloat16 {
 public:
  /// Of no value in particular, as a float is.
  BFloat16() = default;
  /// Rounds to the nearest, ties to even. NaN stays NaN; from 3.39617752e38 on it is infinity.
  INFTY_HOST_DEVICE explicit constexpr BFloat16(float x)
      : bits_(static_cast<std::uint16_t>(detail::bfloat16_bits(x) >> 16)) {}
  /// Rounds once, to the nearest of what the double is, ties to even.
  INFTY_HOST_DEVICE explicit constexpr BFloat16(double x) : BFloat16(nearer(x)) {}
  /// The number that has these bits.
  INFTY_HOST_DEVICE static constexpr BFloat16 from_bits(std::uint16_t bits) {
    BFloat16 out(0.f);
    out.bits_ = bits;
    return out;
  }

  /// As it is stored: the upper half of a float's bits.
  INFTY_HOST_DEVICE constexpr std::uint16_t bits() const { return bits_; }
  /// Exact.
  INFTY_HOST_DEVICE constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }

 private:
  /// A float that rounds to what x rounds to: where the nearest one lies halfway between two
  /// numbers and x does not, its neighbour on the side of x.
  INFTY_HOST_DEVICE static constexpr float nearer(double x) {
    const auto single = static_cast<float>(x);
    const auto bits = std::bit_cast<std::uint32_t>(single);
    const double magnitude = x < 0 ? -x : x, held = single < 0 ? -double{single} : double{single};
    if ((bits & 0xffffu) != 0x8000u || magnitude == held) return single;
    return std::bit_cast<float>(magnitude > held ? bits + 1 : bits - 1);
  }

  std::uint16_t bits_;
};

}  // namespace infty
