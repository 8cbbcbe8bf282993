// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace recall {

/// What is still known of a fact so many tokens behind it.
struct DistancePoint {
  infty::Index distance = 0;          ///< tokens between the fact and the question
  infty::Index right = 0, asked = 0;  ///< answers, and questions
};

template <class See>
void each_field(DistancePoint& point, See&& see) {
  see("distance", point.distance);
  see("right", point.right);
  see("asked", point.asked);
}

}  // namespace recall
