// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// Sizes of one call: B rows, L queries, K keys of which the first K - L are memory, H heads of D.
struct AttentionSize {
  Index batch, queries, keys, heads, head_dim;  ///< B, L, K, H, D in this order
  /// H D, the width of queries, keys and values.
  INFTY_HOST_DEVICE Index model() const { return heads * head_dim; }
  /// K - L, the keys that are memory.
  INFTY_HOST_DEVICE Index memory() const { return keys - queries; }
};

/// The inputs of `relative_attention`: q [B, L, H D], k and v [B, K, H D], r [K, H D], u and w
/// [H, D], visible [B] or null. Entries of `visible` out of [0, K - L] count as the nearest in it.
template <class T>
struct AttentionInputs {
  const T *q, *k, *v, *r, *u, *w;  ///< in the shapes above
  const Index* visible;  ///< [B], how many of the memory's last keys a row sees; null: all

  /// The first key that row b of the batch may see.
  INFTY_HOST_DEVICE Index first_key(const AttentionSize& s, Index b) const {
    const Index hidden = visible ? s.memory() - visible[b] : 0;
    return hidden < 0 ? 0 : hidden > s.memory() ? s.memory() : hidden;
  }
};

/// Where a backward pass adds the gradients of the inputs; null where none is wanted.
template <class T>
struct AttentionGradients {
  T *q, *k, *v, *r, *u, *w;  ///< of the input of this name, in its shape
};

}  // namespace infty
