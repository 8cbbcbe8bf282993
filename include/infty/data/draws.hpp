// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/random.hpp>

namespace infty::detail {

/// Draws `count` of the numbers below n, without repetition, in random order.
inline std::vector<std::int64_t> choose(Index count, Index n, Random& random) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  for (Index i = 0; i < count; ++i)
    std::swap(all[static_cast<std::size_t>(i)],
              all[static_cast<std::size_t>(i + random.below(n - i))]);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

/// A generator for one row's draws, apart from the low numbers by which others may split the same
/// one, which moves on by one draw.
inline Random random_of_row(Random& random) {
  Random draws = random.split(random.counter() | std::uint64_t{1} << 63U);
  random.seek(random.counter() + 1);
  return draws;
}

}  // namespace infty::detail
