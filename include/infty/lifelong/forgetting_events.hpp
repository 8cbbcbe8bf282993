// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/lifelong/example.hpp>

namespace infty {

/// Counts how often examples were forgotten: answered right, and wrong the next time [Toneva et al.
/// 2019]. The counts are scores for `WriteRule::score`, which then keeps the "forgettable" ones
/// [Wang et al. 2020, section on selection].
class ForgettingEvents {
 public:
  /// Makes counts of n examples that were never answered. @throws infty::ValueError if n < 0 or n >
  /// `largest_size`
  explicit ForgettingEvents(Index n) {
    require_at_least("ForgettingEvents", "n", n, 0);
    require_sizes("ForgettingEvents", {{"n", n}});
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

/// Has a learner learn examples in one pass, `batch` of them a step, and asks it about all of them
/// `looks` times on the way, evenly: what was noted, by their places. Where the examples of a
/// stream come in a drawn order, it says which of them are hard to keep, whatever task they are of;
/// what learns them then sees them twice.
/// @throws infty::ValueError unless batch, looks >= 1; what the model does
template <class L>
ForgettingEvents count_forgetting(L& learner, std::span<const Example> examples, Index batch,
                                  Index looks) {
  require_at_least("count_forgetting", "batch", batch, 1);
  require_at_least("count_forgetting", "looks", looks, 1);
  const Index n = std::ssize(examples);
  batch = (std::min)(batch, (std::max)(n, Index{1}));
  const Index steps = (n + batch - 1) / batch;
  looks = (std::min)(looks, steps);
  const auto part = [&](Index at, Index size) {
    return examples.subspan(static_cast<std::size_t>(at),
                            static_cast<std::size_t>((std::min)(size, n - at)));
  };
  ForgettingEvents events(n);
  for (Index step = 0; step < steps; ++step) {
    learner.train_on(part(step * batch, batch));
    // Look number l is behind step ⌈l steps / looks⌉.
    if ((step + 1) * looks / steps == step * looks / steps) continue;
    constexpr Index at_once = 256;
    for (Index at = 0; at < n; at += at_once) {
      const auto asked = part(at, at_once);
      const auto answers = learner.model.answers(asked);
      for (std::size_t i = 0; i < asked.size(); ++i)
        events.note(at + static_cast<Index>(i), answers[i] == asked[i].labels);
    }
  }
  return events;
}

}  // namespace infty
