// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/kernel/attention.hpp>

namespace infty {

/// The inputs of `scaled_dot_product_attention`: q [B, L, H D], k and v [B, K, H D], visible [B] or
/// null. Entries of `visible` out of [0, K] count as the nearest in it. In `AttentionSize` K may be
/// less than L unless attention is causal.
template <class T>
struct PlainAttentionInputs {
  const T *q, *k, *v;    ///< queries, keys and values; shapes above
  const Index* visible;  ///< [B], how many of the last keys a row sees; null: all
  bool causal;           ///< whether query i sees no key behind K - L + i
  T scale;               ///< that scores are multiplied by

  /// The first key that row b of the batch may see.
  INFTY_HOST_DEVICE Index first_key(const AttentionSize& s, Index b) const {
    const Index hidden = visible ? s.keys - visible[b] : 0;
    return hidden < 0 ? 0 : hidden > s.keys ? s.keys : hidden;
  }
  /// Behind the last key that query i may see. Where that is not above `first_key` it sees none.
  INFTY_HOST_DEVICE Index end_key(const AttentionSize& s, Index i) const {
    return causal ? s.memory() + i + 1 : s.keys;
  }
};

/// Where a backward pass adds the gradients of the inputs; null where none is wanted.
template <class T>
struct PlainAttentionGradients {
  T *q, *k, *v;  ///< of the input of this name, in its shape
};

}  // namespace infty
