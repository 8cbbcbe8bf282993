// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/config.hpp>

namespace recall {

/// What is still known of a fact so many tokens behind it, or of a sequence so long.
struct DistancePoint {
  infty::Index distance = 0;          ///< tokens between the facts and the question, or in all
  infty::Index right = 0, asked = 0;  ///< answers, and questions
};

/// As JSON.
template <class See>
void each_field(DistancePoint& point, See&& see) {
  see("distance", point.distance);
  see("right", point.right);
  see("asked", point.asked);
}

/// Where a probability lies.
struct Interval {
  double low = 0, high = 1;
};

/// Wilson's interval, of 95 %, for the probability of an answer to be right, by independent
/// questions [Wilson 1927]; all of [0, 1] where there are none.
inline Interval wilson(infty::Index right, infty::Index asked) {
  if (asked == 0) return {};
  constexpr double z = 1.959963984540054;  // of 95 % of a normal distribution
  const double n = static_cast<double>(asked), p = static_cast<double>(right) / n;
  const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {middle - half, middle + half};
}

}  // namespace recall
