// SPDX-License-Identifier: MIT
#pragma once

#include <bit>

#include <infty/core/config.hpp>
#include <infty/core/float_bits.hpp>

/// What is a number, told by the bits: under -ffast-math a compiler takes `x == x`, `x - x == 0`
/// and std::isfinite for true, and a limit of NaN for kept.
namespace infty::math {

namespace detail {

/// The bits of inf, which are those of the exponent.
template <class T>
inline constexpr typename FloatBits<T>::Unsigned infinite_bits =
    static_cast<typename FloatBits<T>::Unsigned>(2 * FloatBits<T>::bias + 1)
    << FloatBits<T>::mantissa;

/// The bits of |x|.
template <class T>
INFTY_HOST_DEVICE inline typename FloatBits<T>::Unsigned size_bits(const T& x) {
  using Unsigned = typename FloatBits<T>::Unsigned;
  return std::bit_cast<Unsigned>(x) & static_cast<Unsigned>(~Unsigned(0) >> 1U);
}

/// A word whose first bit says that x is NaN or infinite; words of many x may be joined by `|`. For
/// loops over memory: an and and an addition, which every machine has for vectors.
/// @param size  the bits of |x|
template <class Unsigned>
INFTY_HOST_DEVICE inline Unsigned spill(Unsigned size) {
  constexpr int mantissa = sizeof(Unsigned) == 4 ? 23 : 52;
  return size + (Unsigned(1) << mantissa);
}

/// Whether `spill` said so.
template <class Unsigned>
INFTY_HOST_DEVICE inline bool spilt(Unsigned word) {
  return word > static_cast<Unsigned>(~Unsigned(0) >> 1U);
}

/// The bits of |x| where x was just computed, which Clang under -ffast-math takes for a number and
/// its bits for those of one, unless it comes from memory.
template <class T>
INFTY_HOST_DEVICE inline typename FloatBits<T>::Unsigned stored_size_bits(const T& x) {
#if defined(__CUDA_ARCH__)
  return size_bits(x);
#else
  const volatile T stored = x;
  const T loaded = stored;
  return size_bits(loaded);
#endif
}

}  // namespace detail

/// Infinity, by its bits: where flags rule it out Clang warns of every other way.
template <class T>
inline constexpr T infinity = std::bit_cast<T>(detail::infinite_bits<T>);

/// A quiet NaN, by its bits.
template <class T>
inline constexpr T not_a_number =
    std::bit_cast<T>(detail::infinite_bits<T> | detail::infinite_bits<T> >> 1U);

/// Returns whether x is neither NaN nor infinite, whatever the compiler's flags.
template <class T>
INFTY_HOST_DEVICE inline bool is_finite(const T& x) {
  return detail::stored_size_bits(x) < detail::infinite_bits<T>;
}

/// Returns whether the number at `from` is neither NaN nor infinite: `is_finite` for loops over
/// memory, where it costs an addition and a comparison of integers.
template <class T>
INFTY_HOST_DEVICE inline bool is_finite_at(const T* from) {
  return !detail::spilt(detail::spill(detail::size_bits(*from)));
}

/// Returns whether x is NaN, whatever the compiler's flags.
template <class T>
INFTY_HOST_DEVICE inline bool is_nan(const T& x) {
  return detail::stored_size_bits(x) > detail::infinite_bits<T>;
}

/// Returns whether the number at `from` is NaN: `is_nan` for loops over memory.
template <class T>
INFTY_HOST_DEVICE inline bool is_nan_at(const T* from) {
  return detail::size_bits(*from) > detail::infinite_bits<T>;
}

/// Rounds x to T, and to 0 where the square of that would be no normal number (below 1e-19 in
/// float, 1e-154 in double): for tails of functions in factors of products. Sums of such terms
/// alone are denormal, and Intel's processors take a hundred times as long for each.
template <class T>
INFTY_HOST_DEVICE inline T without_tail(double x) {
  // The square root of the smallest normal number.
  constexpr double least = detail::FloatBits<T>::single ? 0x1p-63 : 0x1p-511;
  return x < least && x > -least ? T(0) : static_cast<T>(x);
}

}  // namespace infty::math
