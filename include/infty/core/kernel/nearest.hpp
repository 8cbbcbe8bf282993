// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// The sizes of a search for the keys that are nearest to queries, by their inner product or by the
/// sum of it and a number that each key brings.
struct NearestSize {
  Index queries;    ///< L, of a row
  Index heads;      ///< H, of the queries
  Index key_heads;  ///< G, of the keys: H, or 1 that all heads share
  Index head_dim;   ///< D
  Index block;      ///< C, keys that a block has room for
  Index k;          ///< how many are wanted, at least 1
};

/// A row of a batch in such a search. Its keys are the entries first, ..., first + count - 1 of its
/// blocks: entry e stands at place e % C of block e / C.
/// Keys may be of a narrower type, such as `BFloat16`; they count as what they are in T.
template <class T, class Stored = T>
struct NearestRow {
  const T* queries;             ///< [L, H, D]
  const Stored* const* blocks;  ///< on the host, places in the backend's memory: each [G, C, D]
  Index first;                  ///< entries of the first block that do not count
  Index count;                  ///< entries that do
  T* scores;       ///< [L, H, k] to be written, the largest first, -infinity behind `count`
  Index* indices;  ///< [L, H, k] of entries behind `first`, -1 behind `count`
  /// As `blocks`, each [C]: what is added to the scores of each key, of all heads; null for
  /// nothing.
  const T* const* offsets = nullptr;
};

namespace detail {

/// Whether an entry of this score comes before another of a search: the larger score, NaN before
/// all, of equal ones the lower index. That is an order without ties, so what is found does not
/// depend on how one searches.
template <class T>
INFTY_HOST_DEVICE inline bool comes_before(const T& a, Index at, const T& b, Index other) {
  if (a > b) return true;
  if (a < b) return false;
  const bool a_is_nan = math::is_nan_at(&a), b_is_nan = math::is_nan_at(&b);
  return a_is_nan == b_is_nan ? at < other : a_is_nan;
}

}  // namespace detail

}  // namespace infty
