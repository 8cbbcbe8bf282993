// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// Sizes of one call: B rows, L queries, K keys of which the first K - L are memory, H heads of D.
struct AttentionSize {
  Index batch, queries, keys, heads, head_dim;  ///< B, L, K, H, D in this order
  /// Whether queries and keys stand from right to left, so that query i sees what is to its right:
  /// the keys j <= i, of K <= L, of which none is memory   (`look_ahead_attention`).
  bool mirrored = false;

  /// H D, the width of queries, keys and values.
  INFTY_HOST_DEVICE Index model() const { return heads * head_dim; }
  /// The keys that all queries see: K - L, which are memory, or 0 if mirrored.
  INFTY_HOST_DEVICE Index memory() const { return mirrored ? 0 : keys - queries; }
  /// The rows of r: a distance each, the longest first.
  INFTY_HOST_DEVICE Index distances() const { return mirrored ? queries : keys; }
};

/// The inputs of `relative_attention`: q [B, L, H D], k and v [B, K, H D], r [distances, H D], u
/// and w [H, D], visible [B] or null. Entries of `visible` out of [0, K - L], or of [1, K] if
/// mirrored, count as the nearest in it.
template <class T>
struct AttentionInputs {
  const T *q, *k, *v, *r, *u, *w;  ///< in the shapes above
  /// [B], how many of the memory's last keys a row sees, or of the first keys if mirrored; null:
  /// all
  const Index* visible;

  /// The first key that row b of the batch may see.
  INFTY_HOST_DEVICE Index first_key(const AttentionSize& s, Index b) const {
    const Index hidden = visible && !s.mirrored ? s.memory() - visible[b] : 0;
    return hidden < 0 ? 0 : hidden > s.memory() ? s.memory() : hidden;
  }
  /// The end of the keys that row b of the batch may see.
  INFTY_HOST_DEVICE Index end_key(const AttentionSize& s, Index b) const {
    if (!visible || !s.mirrored) return s.keys;
    return visible[b] < 1 ? 1 : visible[b] > s.keys ? s.keys : visible[b];
  }
  /// The end of the keys that query i of row b sees, one at least.
  INFTY_HOST_DEVICE Index end_key(const AttentionSize& s, Index b, Index i) const {
    const Index own = s.memory() + i + 1, end = end_key(s, b);
    return own < end ? own : end;
  }
};

/// Where a backward pass adds the gradients of the inputs; null where none is wanted.
template <class T>
struct AttentionGradients {
  T *q, *k, *v, *r, *u, *w;  ///< of the input of this name, in its shape
};

}  // namespace infty
