// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <unordered_map>
#include <vector>

#include <infty/autograd/fwd.hpp>
#include <infty/core/config.hpp>

namespace infty::detail {

/// Which operation of a backward pass is the last to add to the gradient of each of some leaves.
/// Operations have places, in the order in which they go backward: 0, 1, ...
class LastUses {
 public:
  template <class T, class B>
  explicit LastUses(std::span<const Variable<T, B>> leaves) : places_(leaves.size(), nowhere) {
    for (std::size_t i = 0; i < leaves.size(); ++i) leaves_.emplace(leaves[i].identity(), i);
  }

  /// Notes that the operation at a place, the last until now, has this input.
  void see(const void* identity, Index place) {
    const auto found = leaves_.find(identity);
    if (found != leaves_.end()) places_[found->second] = place;
  }
  /// The same of one that may add to any gradient.
  void see_all(Index place) { std::fill(places_.begin(), places_.end(), place); }

  /// Calls done(i) for the leaves whose gradients are complete when the operation at a place has
  /// gone backward, and were not before; those that no operation has, when `place` is -1.
  template <class Done>
  void reached(Index place, Done&& done) {
    if (order_.size() != places_.size()) {
      order_.resize(places_.size());
      std::iota(order_.begin(), order_.end(), std::size_t{0});
      std::stable_sort(order_.begin(), order_.end(),
                       [&](std::size_t a, std::size_t b) { return places_[a] < places_[b]; });
    }
    for (; next_ < order_.size() && places_[order_[next_]] <= place; ++next_) done(order_[next_]);
  }

 private:
  static constexpr Index nowhere = -1;

  std::unordered_map<const void*, std::size_t> leaves_;
  std::vector<Index> places_;       // of each leaf's last use
  std::vector<std::size_t> order_;  // of leaves, by these
  std::size_t next_ = 0;
};

}  // namespace infty::detail
