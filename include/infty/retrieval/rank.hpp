// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

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

/// (a_d - b_d)².
template <class T, class Stored>
struct SquaredDifference {
  const T* a;
  const Stored* b;
  INFTY_HOST_DEVICE T operator()(Index d) const { return (a[d] - b[d]) * (a[d] - b[d]); }
};
/// a_d b_d.
template <class T, class Stored>
struct ElementProduct {
  const T* a;
  const Stored* b;
  INFTY_HOST_DEVICE T operator()(Index d) const { return a[d] * b[d]; }
};

/// The sum of term(d) over d < n, in eight sums beside each other, which a compiler puts into a
/// vector.
template <class T, class Term>
INFTY_HOST_DEVICE T sum_in_lanes(Index n, Term term) {
  constexpr int width = 8;
  T part[width] = {};
  Index d = 0;
  for (; d + width <= n; d += width)
    for (int lane = 0; lane < width; ++lane) part[lane] += term(d + lane);
  for (; d < n; ++d) part[0] += term(d);
  for (int half = width / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) part[lane] += part[lane + half];
  return part[0];
}

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
      const auto* const its = key(entry);
      using Stored = std::remove_cvref_t<decltype(*its)>;
#if !defined(__CUDA_ARCH__)
      // Keys stand anywhere: those of later ones are asked for before they are needed.
      constexpr Index ahead = 8, line = 64 / static_cast<Index>(sizeof(Stored));
      if (j + ahead < k && index[j + ahead] >= 0)
        for (Index d = 0; d < dim; d += line) __builtin_prefetch(key(index[j + ahead]) + d);
#endif
      const T sum = distance ? -sum_in_lanes<T>(dim, SquaredDifference<T, Stored>{query, its})
                             : sum_in_lanes<T>(dim, ElementProduct<T, Stored>{query, its});
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
