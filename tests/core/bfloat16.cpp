// SPDX-License-Identifier: MIT
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <infty/core/bfloat16.hpp>
#include <infty/core/random.hpp>

#include "support/catch.hpp"

using infty::BFloat16;
using infty::detail::bfloat16_bits;
using infty::detail::bfloat16_pair;
using infty::detail::to_bfloat16;

namespace bfloat16_tests {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// The nearer of the two bfloat16 around a finite x, by distances that `double` has exactly; of two
/// as near the one whose last bit is 0. Beyond the largest there stands what would be next.
double nearest_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7fff0000u;
  const auto value = [](std::uint32_t b) {
    return b < 0x7f800000u ? double{from_bits(b)} : std::ldexp(1., 128);
  };
  const double low = value(bits), high = value(bits + 0x10000u), at = std::abs(double{x});
  const bool down = at - low < high - at || (at - low == high - at && (bits >> 16 & 1u) == 0);
  return std::copysign(down ? low : high, double{x});
}

void check_rounding(float x) {
  const double expected = nearest_bfloat16(x);
  const double got = double{to_bfloat16(x)};
  CAPTURE(x, got, expected);
  if (std::abs(expected) >= std::ldexp(1., 128))
    CHECK(got == std::copysign(std::numeric_limits<double>::infinity(), expected));
  else
    CHECK((got == expected && std::signbit(got) == std::signbit(expected)));
}

}  // namespace bfloat16_tests

using namespace bfloat16_tests;

TEST_CASE("to_bfloat16: the nearest, of all magnitudes") {
  infty::Random random(infty::tests::seed);
  for (int i = 0; i < 200000; ++i) {
    const float x = from_bits(static_cast<std::uint32_t>(std::ldexp(random.uniform(), 32)));
    if (std::isfinite(x)) check_rounding(x);
  }
  for (const std::uint32_t upper : {0u, 1u, 0x7fu, 0x80u, 0x3f80u, 0x3f81u, 0x7f7eu, 0x7f7fu})
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      check_rounding(from_bits(upper << 16 | lower));
      check_rounding(from_bits(0x80000000u | upper << 16 | lower));
    }
}

TEST_CASE("to_bfloat16: infinities stay, what is not a number stays so") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(to_bfloat16(infinity) == infinity);
  CHECK(to_bfloat16(-infinity) == -infinity);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u})
    CHECK(std::isnan(to_bfloat16(from_bits(bits))));
}

TEST_CASE("bfloat16_pair: the first is the lower half") {
  CHECK(bfloat16_pair(1.f, -2.f) == 0xc0003f80u);
  CHECK(bfloat16_bits(1.f) == 0x3f800000u);
}

TEST_CASE("BFloat16: two bytes, the upper half of a float") {
  static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);
  static_assert(BFloat16::from_bits(0xC049) == -3.140625F);
  static_assert(BFloat16(1.F).bits() == 0x3F80);
  CHECK(BFloat16::from_bits(0x7F80) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(static_cast<float>(BFloat16::from_bits(0x7FC0))));
  CHECK(BFloat16::from_bits(0x0001) == 0x1p-133F);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto x = BFloat16::from_bits(static_cast<std::uint16_t>(bits));
    const auto again = BFloat16(static_cast<float>(x));
    if (std::isnan(static_cast<float>(x)))
      CHECK(std::isnan(static_cast<float>(again)));
    else
      CHECK(again.bits() == bits);
  }
}

TEST_CASE("BFloat16: a double is rounded once") {
  // Halfway between two numbers, and next to it by less than a float can tell.
  for (const int upper : {0x3F80, 0x3F81, 0xBF80, 0xBF81, 0x0080, 0x8001, 0x7F00}) {
    const auto bits = static_cast<std::uint16_t>(upper);
    const double low{BFloat16::from_bits(bits)};
    const double high{BFloat16::from_bits(static_cast<std::uint16_t>(bits + 1))};
    const double half = (low + high) / 2;
    CAPTURE(bits);
    CHECK(BFloat16(half).bits() == bits + bits % 2);
    CHECK(BFloat16(half + (low - half) * 1e-9).bits() == bits);
    CHECK(BFloat16(half + (high - half) * 1e-9).bits() == bits + 1);
  }
  infty::Random random(infty::tests::seed);
  for (int i = 0; i < 100000; ++i) {
    const double x =
        std::ldexp(2 * random.uniform() - 1, static_cast<int>(200 * random.uniform()) - 100);
    const double got{BFloat16(x)};
    CAPTURE(x, got);
    const std::uint16_t bits = BFloat16(x).bits();
    for (const int step : {-1, 1}) {
      const double other{BFloat16::from_bits(static_cast<std::uint16_t>(bits + step))};
      CHECK(std::abs(got - x) <= std::abs(other - x));
    }
  }
  CHECK(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<double>::quiet_NaN()))));
  CHECK(BFloat16(-0.).bits() == 0x8000);
}
