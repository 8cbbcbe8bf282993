// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/kernel/adam.hpp>
#include <infty/eigen/parallel.hpp>

namespace infty::detail {

/// A step of Adam of many parameters in one loop over the threads, as if their elements stood one
/// behind the other: most parameters are too small for a loop of their own to be shared out.
struct FusedAdam {
  /// Updates `count` parameters; allocates nothing.
  template <class T>
  static void step(const AdamFactors<T>& factors, const AdamItem<T>* items, Index count) {
    constexpr Index most = 256, grain = 8192;
    Index ends[most];  // of elements up to and with parameter k
    for (; count > 0; items += most, count -= most) {
      const Index n = (std::min)(count, most);
      Index all = 0;
      for (Index k = 0; k < n; ++k) ends[k] = all += items[k].size;
      parallel_for(all, grain, [&](Index begin, Index end) {
        Index k = std::upper_bound(ends, ends + n, begin) - ends;
        for (Index at = begin; at < end; at = (std::min)(end, ends[k++])) {
          const Index start = ends[k] - items[k].size;
          update(factors, items[k], at - start, (std::min)(end, ends[k]) - start);
        }
      });
    }
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
