// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/kernel/adam.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// A step of Adam of all parameters in one loop over the threads, as if their elements stood one
/// behind the other: most parameters are too small for a loop of their own to be shared out.
struct FusedAdam {
  /// Updates `count` parameters.
  template <class T>
  static void step(const AdamFactors<T>& factors, const AdamItem<T>* items, Index count) {
    constexpr Index grain = 8192;
    const Scratch<Index> scratch(count);
    Index* const ends = scratch.data();  // [count], of elements up to and with parameter k
    Index all = 0;
    for (Index k = 0; k < count; ++k) ends[k] = all += items[k].size;
    parallel_for(all, grain, [&](Index begin, Index end) {
      Index k = std::upper_bound(ends, ends + count, begin) - ends;
      for (Index at = begin; at < end; ++k) {
        const Index start = ends[k] - items[k].size, stop = (std::min)(end, ends[k]);
        update(factors, items[k], at - start, stop - start);
        at = stop;
      }
    });
  }

 private:
  /// Updates elements [begin, end) of a parameter.
  template <class T>
  static void update(const AdamFactors<T> factors, const AdamItem<T> item, Index begin, Index end) {
    INFTY_INDEPENDENT_LOOP
    for (Index i = begin; i < end; ++i) factors(item, i);
  }
};

}  // namespace infty::detail
