// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/snapshot.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/relative_attention.hpp>

namespace infty::detail {

/// Keys, values and projected positions that a layer keeps from one segment to the next while no
/// gradient is recorded, so that each is computed once and not once a token. They stand for the
/// very tensors and parameters that they were made of and are made anew when these are others: when
/// rows were moved or reset, or a parameter changed. No part of what a state remembers or saves.
template <class T, class Backend>
class AttentionCache {
 public:
  using V = Variable<T, Backend>;
  using Attention = RelativeAttention<T, Backend>;

  /// What attention needs of K = M + L vectors, memory first: [B, K, H D] twice and [K, H D].
  struct Context {
    V keys, values, positions;
  };

  /// The context of a segment behind a memory, whose vectors are given as attention sees them.
  /// @param past      the memory's state; `memory` of its vectors are held by the row with most
  /// @param seen      past vectors [B, M, d] -> the same, normed if the layer does that
  /// @param segment   [B, L, d], as attention sees it
  /// @param encoding  [>= K, d], last row is distance 0
  template <class Seen>
  Context extend(const ShortTermState<T, Backend>& past, Index memory, const Seen& seen,
                 const V& segment, const Tensor<T, Backend>& encoding, const Attention& attention,
                 const LayerNorm<T, Backend>& norm) {
    const V vectors(past.recent.vectors);
    const Index batch = vectors.dim(0), most = vectors.dim(1), K = memory + segment.dim(1);
    if (!holds(past, attention, norm)) {
      const auto mapped = [&](const auto& map) {
        const Index e = map.weight.dim(0);
        V all(Tensor<T, Backend>::zeros(Shape{batch, most - memory, e}));
        return memory > 0 ? concat(all, map.forward(seen(narrow(vectors, most - memory, most))))
                          : all;
      };
      keys_ = mapped(attention.key).value();
      values_ = mapped(attention.value).value();
      vectors_ = past.recent.vectors;
      of_ = {Snapshot(attention.key.weight), Snapshot(attention.value.weight),
             Snapshot(norm.weight), Snapshot(norm.bias)};
    }
    if (positions_.size() == 0 || encoding_.data() != encoding.data() ||
        encoding_.shape() != encoding.shape() || !position_.holds(attention.position.weight)) {
      positions_ = attention.position.forward(V(encoding)).value();
      encoding_ = encoding;
      position_ = Snapshot(attention.position.weight);
    }
    new_keys_ = attention.key.forward(segment).value();
    new_values_ = attention.value.forward(segment).value();
    const auto behind = [&](const Tensor<T, Backend>& held, const Tensor<T, Backend>& added) {
      return concat(narrow(V(held), most - memory, most), V(added));
    };
    const Index longest = encoding.dim(0);
    return {behind(keys_, new_keys_), behind(values_, new_values_),
            V(positions_.slice(longest - K, longest))};
  }

  /// Moves keys and values on as the memory did with the segment of the last `extend`.
  /// @param held  numbers of vectors that its rows held before
  void remember(const ShortTermMemory<T, Backend>& memory, const RowCounts& held,
                const ShortTermState<T, Backend>& now) {
    const ShortTermMemory<T, Backend> like(keys_.dim(2), memory.capacity(), memory.stride());
    const auto moved = [&](Tensor<T, Backend>& old, Tensor<T, Backend>& added) {
      ShortTermState<T, Backend> state{{std::move(old), held}};
      like.write(state, added);
      old = state.recent.vectors;
      added = {};
    };
    moved(keys_, new_keys_);
    moved(values_, new_values_);
    vectors_ = now.recent.vectors;
  }

 private:
  struct Parameters {
    Snapshot<T, Backend> key, value, norm_weight, norm_bias;
  };

  bool holds(const ShortTermState<T, Backend>& past, const Attention& attention,
             const LayerNorm<T, Backend>& norm) const {
    return keys_.rank() == 3 && vectors_.data() == past.recent.vectors.data() &&
           vectors_.shape() == past.recent.vectors.shape() && of_.key.holds(attention.key.weight) &&
           of_.value.holds(attention.value.weight) && of_.norm_weight.holds(norm.weight) &&
           of_.norm_bias.holds(norm.bias);
  }

  Tensor<T, Backend> vectors_, keys_, values_;  ///< [B, most held, d] and [B, most held, H D] twice
  Tensor<T, Backend> new_keys_, new_values_;    ///< of the last segment, until it is remembered
  Tensor<T, Backend> encoding_, positions_;     ///< [longest, d] and [longest, H D]
  Parameters of_;
  Snapshot<T, Backend> position_;
};

}  // namespace infty::detail
