// SPDX-License-Identifier: MIT
#include <limits>
#include <optional>

#include <infty/core/checked.hpp>

#include "support/catch.hpp"

using infty::checked_add;
using infty::checked_multiply;
using infty::Index;
using infty::largest_size;
using infty::require_sizes;

constexpr Index greatest = std::numeric_limits<Index>::max(),
                least = std::numeric_limits<Index>::min();

TEST_CASE("checked_multiply, checked_add: what they return is exact, or nothing") {
  CHECK(checked_multiply(3037000499, 3037000499) == Index{9223372030926249001});
  CHECK(checked_multiply(3037000500, 3037000500) == std::nullopt);
  CHECK(checked_multiply(Index{1} << 62, 2) == std::nullopt);
  CHECK(checked_multiply(greatest, 0) == 0);
  CHECK(checked_multiply(-1, greatest) == -greatest);
  CHECK(checked_multiply(-1, least) == std::nullopt);
  CHECK(checked_add(greatest, 0) == greatest);
  CHECK(checked_add(greatest, 1) == std::nullopt);
  CHECK(checked_add(least, -1) == std::nullopt);
  CHECK(checked_add(greatest, least) == -1);
  static_assert(checked_multiply(6, 7) == 42);
}

TEST_CASE("require_sizes: a product up to largest_size passes, one above names the largest") {
  CHECK_NOTHROW(require_sizes("op", {{"a", largest_size}}));
  CHECK_NOTHROW(require_sizes("op", {{"a", Index{1} << 28}, {"b", Index{1} << 28}}));
  CHECK_THROWS_WITH(require_sizes("op", {{"a", 3}, {"b", Index{1} << 55}, {"c", 5}}),
                    "[op] b is 36028797018963968: with a = 3, c = 5 there would be more than "
                    "72057594037927936 numbers");
  CHECK_THROWS_WITH(require_sizes("op", {{"a", 2}, {"b", greatest}}),
                    "[op] b is 9223372036854775807: it must be at most 72057594037927936");
}

TEST_CASE("require_sizes: nothing is too large beside a 0, in whatever order, but a size itself") {
  constexpr Index large = largest_size;
  CHECK_NOTHROW(require_sizes("op", {{"a", large}, {"b", large}, {"c", 0}}));
  CHECK_NOTHROW(require_sizes("op", {{"c", 0}, {"a", large}, {"b", large}}));
  CHECK_THROWS_AS(require_sizes("op", {{"c", 0}, {"a", large + 1}}), infty::ValueError);
}
