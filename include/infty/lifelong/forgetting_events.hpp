// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

namespace infty {

/// Counts how often examples were forgotten: answered right, and wrong the next time [Toneva et al.
/// 2019]. The counts are scores for `WriteRule::score`, which then keeps the "forgettable" ones
/// [Wang et al. 2020, section on selection].
class ForgettingEvents {
 public:
  /// Makes counts of n examples that were never answered. @throws infty::ValueError if n < 0
  explicit ForgettingEvents(Index n) {
    require_at_least("ForgettingEvents", "n", n, 0);
    events_.resize(static_cast<std::size_t>(n), 0);
    right_.resize(static_cast<std::size_t>(n), 0);
  }

  /// Takes an answer to example i down, and whether it was right.
  /// @throws infty::ShapeError unless there is such an example
  void note(Index i, bool right) {
    require<ShapeError>(i >= 0 && i < std::ssize(events_), "ForgettingEvents::note", "example is ",
                        i, ": there are ", events_.size());
    const auto at = static_cast<std::size_t>(i);
    if (right_[at] != 0 && !right) events_[at] += 1;
    right_[at] = right ? 1 : 0;
  }

  /// How often each was forgotten, one number an example.
  const std::vector<double>& counts() const { return events_; }

 private:
  std::vector<double> events_;
  std::vector<unsigned char> right_;  ///< the last time
};

}  // namespace infty
