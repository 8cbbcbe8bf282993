// SPDX-License-Identifier: MIT
#pragma once

#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/multi_head_attention.hpp>

namespace infty {

/// A layer of a transformer whose vectors read in a context that need not be themselves:
/// a = norm(x + attention(x, context)), then norm(a + feed(a)), with dropout behind both
/// [Vaswani et al. 2017, §3.1]. No positions, no mask.
template <class T, class Backend = EigenBackend>
struct CrossBlock {
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;

  MultiHeadAttention<T, Backend> attention;  ///< of x to the context
  LayerNorm<T, Backend> attention_norm;      ///< behind it
  FeedForward<T, Backend> feed;              ///< changes each vector by itself
  LayerNorm<T, Backend> feed_norm;           ///< behind it

  CrossBlock() = default;

  /// Makes all parts, with weights drawn as `Linear` draws them.
  /// @param hidden  width of the feed's inner layer
  /// @throws infty::ValueError unless all sizes are valid
  CrossBlock(AttentionSizes sizes, Index hidden, Random random)
      : attention((sizes.validate(), sizes.model_dim), sizes.heads, sizes.head_dim,
                  random.split(0)),
        attention_norm(sizes.model_dim),
        feed(sizes.model_dim, hidden, random.split(1)),
        feed_norm(sizes.model_dim) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("attention", attention);
    see("attention_norm", attention_norm);
    see("feed", feed);
    see("feed_norm", feed_norm);
  }

  /// x [B, L, d] and context [B, K, d] -> [B, L, d].
  /// @param visible  [B], how many of the context's vectors, the last ones, a row may see; empty
  /// for all
  /// @throws infty::ShapeError; infty::ValueError where `visible` is not in [0, K]
  V forward(const V& x, const V& context, Pass<T, Backend>& pass,
            const Tensor<Index, Backend>& visible = {}) const {
    const V a = attention_norm.forward(
        pass.add_dropped(x, attention.forward(x, context, {.visible = visible})));
    return feed_norm.forward(pass.add_dropped(a, feed.forward(a, pass)));
  }
};

}  // namespace infty
