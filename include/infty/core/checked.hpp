// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <optional>
#include <sstream>
#include <string_view>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// Most numbers that a configuration may ask for at once: the bytes of a few such arrays are still
/// an Index, so that what is computed of checked sizes cannot overflow.
inline constexpr Index largest_size = Index{1} << 56;

/// Most that a constant of a configuration may be, so that `float` has it.
inline constexpr double largest_constant = 1e30;
/// Least that a constant may be which something is divided by, so that `float` has it.
inline constexpr double least_divisor = 1e-30;

/// Refuses a constant out of a range. @throws infty::ValueError that names it
inline void require_within(std::string_view op, std::string_view name, double value, double low,
                           double high) {
  require(math::is_finite(value) && low <= value && value <= high, op, name, " is ", value,
          ": it must lie in [", low, ", ", high, "]");
}

/// Returns a b, or nothing where that is no Index.
constexpr std::optional<Index> checked_multiply(Index a, Index b) {
  Index product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// Returns a + b, or nothing where that is no Index.
constexpr std::optional<Index> checked_add(Index a, Index b) {
  Index sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

/// A size by the name that messages call it by.
struct NamedSize {
  std::string_view name;  ///< of the option or dimension, as the user wrote it
  Index value = 0;        ///< the size itself, in elements
};

/// Refuses an array of such extents that no machine can hold, before anything is computed of them.
/// @param sizes  each >= 0
/// @throws infty::ValueError that names the largest, unless each of them and the product of all are
/// at most `largest_size`
inline void require_sizes(std::string_view op, std::initializer_list<NamedSize> sizes) {
  std::optional<Index> product = 1;
  const NamedSize* largest = sizes.begin();
  for (const NamedSize& size : sizes) {
    require(size.value <= largest_size, op, size.name, " is ", size.value, ": it must be at most ",
            largest_size);
    if (size.value > largest->value) largest = &size;
    if (product) product = checked_multiply(*product, size.value);
  }
  // Where a product overflows on the way a later 0 would make it 0 again; then there is nothing.
  if (product.value_or(largest_size + 1) <= largest_size) return;
  for (const NamedSize& size : sizes)
    if (size.value == 0) return;
  std::ostringstream others;
  for (const NamedSize& size : sizes)
    if (&size != largest)
      others << (others.tellp() > 0 ? ", " : "") << size.name << " = " << size.value;
  raise<ValueError>(op, largest->name, " is ", largest->value, ": with ", others.str(),
                    " there would be more than ", largest_size, " numbers");
}

/// Refuses a number of rows that no state can have. @throws infty::ValueError unless batch is in
/// [1, `largest_size`]
inline void require_rows(std::string_view op, Index batch) {
  require(batch >= 1, op, "batch is ", batch, ": it must be >= 1");
  require_sizes(op, {{"batch", batch}});
}

}  // namespace infty
