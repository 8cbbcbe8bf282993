// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>
#include <infty/memory/fwd.hpp>

namespace infty {

/// Where a kernel finds the entries of a `KeyValueStore`.
template <class Stored>
struct EntryPlaces {
  const Stored* const* blocks;       ///< [batch, most]
  const Index* first;                ///< [batch], entries of a row's first block that do not count
  Index most;                        ///< blocks that a row has room for in `blocks`
  Index block, key_heads, head_dim;  ///< C, G and D

  /// The key of entry `index` of a row and a key head, D numbers.
  INFTY_HOST_DEVICE const Stored* key(Index row, Index head, Index index) const {
    const Index entry = first[row] + index;
    return blocks[row * most + entry / block] + (head * block + entry % block) * head_dim;
  }
  /// The value beside it, D numbers.
  INFTY_HOST_DEVICE const Stored* value(Index row, Index head, Index index) const {
    return key(row, key_heads + head, index);
  }
};

/// The last entries of each row of a `KeyValueStore`, as they stand now: they stay whatever becomes
/// of the store.
template <class T, class Backend, class Stored>
struct StoredEntries {
  Index key_heads = 0, head_dim = 0, block = 0;  ///< G, D and C
  RowCounts first;                               ///< [batch], see `EntryPlaces`
  RowCounts count;                               ///< [batch], entries of each row
  Index most = 0;                                ///< the most blocks that a row has
  std::vector<const Stored*> blocks;  ///< [batch, most] on the host, places in the backend's memory
  std::vector<std::shared_ptr<const void>> kept;  ///< keeps the blocks alive
  Tensor<const Stored*, Backend> device_blocks;   ///< `blocks` in the backend's memory
  Tensor<Index, Backend> device_first;            ///< `first` in the backend's memory

  /// The most entries that a row has.
  Index longest() const {
    return count.empty() ? 0 : *std::max_element(count.begin(), count.end());
  }
  /// What a kernel needs. It must not outlive this.
  EntryPlaces<Stored> places() const {
    return {device_blocks.data(), device_first.data(), most, block, key_heads, head_dim};
  }
};

}  // namespace infty
