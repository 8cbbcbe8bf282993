// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/retrieval/index.hpp>

namespace infty::detail {

/// Where the keys of a search stand, for a kernel.
template <class T>
struct KeyBlocks {
  const T* const* blocks;  ///< each [C, D]
  Index block, dim;        ///< C, D

  INFTY_HOST_DEVICE const T* operator()(Index entry) const {
    return blocks[entry / block] + entry % block * dim;
  }
};

/// Replaces the scores (rows, k) of what was found by those of the keys themselves, q k or
/// -|q - k|², the latter summed from the differences, which loses nothing where large numbers
/// cancel, and puts them in their order; of equal ones the older come first. Behind what was found
/// stands -1.
/// @param key  gives the D numbers of an entry
template <class B, class T, class Key>
void rank_by_keys(Index rows, Index k, Index dim, SearchMetric metric, const T* queries, Key key,
                  T* scores, Index* indices) {
  const bool distance = metric == SearchMetric::squared_l2;
  B::for_each_row(rows, k * dim, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const query = queries + row * dim;
    T* const score = scores + row * k;
    Index* const index = indices + row * k;
    for (Index j = 0; j < k && index[j] >= 0; ++j) {
      const Index entry = index[j];
      const T* const its = key(entry);
      T sum = 0;
      if (distance)
        for (Index d = 0; d < dim; ++d) sum -= (query[d] - its[d]) * (query[d] - its[d]);
      else
        for (Index d = 0; d < dim; ++d) sum += query[d] * its[d];
      Index at = j;  // the order is nearly right already
      for (; at > 0 && (score[at - 1] < sum || (score[at - 1] == sum && index[at - 1] > entry));
           --at) {
        score[at] = score[at - 1];
        index[at] = index[at - 1];
      }
      score[at] = sum;
      index[at] = entry;
    }
  });
}

}  // namespace infty::detail
