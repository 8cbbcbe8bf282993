// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/plain_attention.hpp>

namespace infty {

/// Multi-head attention without positions, of a sequence to itself or to another
/// [Vaswani et al. 2017, §3.2.2]. Heads H of head_dim D.
template <class T, class Backend>
struct MultiHeadAttention {
  Linear<T, Backend> query, key, value;  ///< d -> H D
  Linear<T, Backend> out;                ///< H D -> d
  Index heads = 1;                       ///< H; D is the width of the maps over H

  MultiHeadAttention() = default;

  /// Makes the four maps, with weights drawn as `Linear` draws them.
  /// @param d  width of vectors  @param heads_  H  @param head_dim  D  @param bias  of all four
  /// maps
  /// @throws infty::ValueError unless all sizes are >= 1, and their product at most `largest_size`
  MultiHeadAttention(Index d, Index heads_, Index head_dim, Random random, bool bias = true)
      : query((require_at_least("MultiHeadAttention", "d", d, 1),
               require_at_least("MultiHeadAttention", "heads", heads_, 1),
               require_at_least("MultiHeadAttention", "head_dim", head_dim, 1),
               require_sizes("MultiHeadAttention",
                             {{"d", d}, {"heads", heads_}, {"head_dim", head_dim}}),
               d),
              heads_ * head_dim, random.split(0), bias),
        key(d, heads_ * head_dim, random.split(1), bias),
        value(d, heads_ * head_dim, random.split(2), bias),
        out(heads_ * head_dim, d, random.split(3), bias),
        heads(heads_) {}

  /// What x reads in a context, which is x itself for self-attention.
  /// @param x        [B, L, d]
  /// @param context  [B, K, d]
  /// @param options  as for `scaled_dot_product_attention`; `heads` is the layer's own
  /// @return         [B, L, d]
  /// @throws infty::ShapeError; infty::ValueError
  Variable<T, Backend> forward(const Variable<T, Backend>& x, const Variable<T, Backend>& context,
                               PlainAttentionOptions<Backend> options = {}) const {
    options.heads = heads;
    return out.forward(scaled_dot_product_attention(query.forward(x), key.forward(context),
                                                    value.forward(context), options));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
  }
};

}  // namespace infty
