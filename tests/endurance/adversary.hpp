// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <infty/core/random.hpp>

// Who chooses where a memory samples its past, and looks at the signal before choosing.

namespace endurance {

using infty::Index;

enum class Adversary {
  random,       ///< anywhere
  peak,         ///< about the largest |X(t)|
  alternating,  ///< between the largest and the least X(t), sample by sample
  blocks,       ///< the same in blocks, which a fit follows
};
inline constexpr std::array adversaries{Adversary::random, Adversary::peak, Adversary::alternating,
                                        Adversary::blocks};

/// Chooses places, as many as `to` has room for.
/// @param at      where `signal` was taken, rising from 0 to 1
/// @param signal  X(t) there
inline void choose(Adversary who, std::span<const float> at, std::span<const float> signal,
                   infty::Random& random, std::span<float> to) {
  const auto place = [&](auto found) { return at[static_cast<std::size_t>(found)]; };
  const auto begin = signal.begin(), end = signal.end();
  const float high = place(std::max_element(begin, end) - begin),
              low = place(std::min_element(begin, end) - begin);
  const auto larger = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
  const float peak = place(std::max_element(begin, end, larger) - begin);
  const std::size_t block = std::max<std::size_t>(1, to.size() / 16);
  for (std::size_t m = 0; m < to.size(); ++m) {
    const auto any = static_cast<float>(random.uniform());
    switch (who) {
      case Adversary::random:
        to[m] = any;
        break;
      case Adversary::peak:
        to[m] = std::clamp(peak + .04f * (any - .5f), 0.f, 1.f);
        break;
      case Adversary::alternating:
        to[m] = m % 2 ? high : low;
        break;
      case Adversary::blocks:
        to[m] = m / block % 2 ? high : low;
        break;
    }
  }
}

}  // namespace endurance
