// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/random.hpp>

namespace infty::detail {

/// Draws `count` of the numbers below n, without repetition, in random order.
inline std::vector<std::int64_t> choose(Index count, Index n, Random& random) {
  // All n in a row, each of the first `count` swapped with one behind it. Those that moved are
  // held.
  std::unordered_map<Index, Index> moved;
  const auto at = [&](Index place) {
    const auto found = moved.find(place);
    return found == moved.end() ? place : found->second;
  };
  std::vector<std::int64_t> out;
  for (Index i = 0; i < count; ++i) {
    const Index place = i + random.below(n - i);
    out.push_back(at(place));
    moved[place] = at(i);
  }
  return out;
}

/// A generator for one row's draws, apart from the low numbers by which others may split the same
/// one, which moves on by one draw.
inline Random random_of_row(Random& random) {
  Random draws = random.split(random.counter() | std::uint64_t{1} << 63U);
  random.seek(random.counter() + 1);
  return draws;
}

}  // namespace infty::detail
