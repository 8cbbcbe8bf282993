// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

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

}  // namespace infty
