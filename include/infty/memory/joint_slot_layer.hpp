// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/nn/gelu_feed.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/pass.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/nn/slot_attention.hpp>

namespace infty {

/// One side of a `JointSlotLayer`: what slots, or words, are mapped by.
template <class T, class Backend = EigenBackend>
struct JointSlotSide {
  using V = Variable<T, Backend>;

  Linear<T, Backend> query, key, value;  ///< d -> d
  Linear<T, Backend> out;                ///< behind the heads, d -> d
  LayerNorm<T, Backend> attention_norm;  ///< behind the sum with what was read
  GeluFeed<T, Backend> feed;             ///< d -> d
  LayerNorm<T, Backend> feed_norm;       ///< behind the sum with it

  JointSlotSide() = default;

  /// Makes all maps, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless d, hidden >= 1
  JointSlotSide(Index d, Index hidden, Random random)
      : query(d, d, random.split(0)),
        key(d, d, random.split(1)),
        value(d, d, random.split(2)),
        out(d, d, random.split(3)),
        attention_norm(d),
        feed(d, hidden, random.split(4)),
        feed_norm(d) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
    see("attention_norm", attention_norm);
    see("feed", feed);
    see("feed_norm", feed_norm);
  }

  /// What comes of x with what it has read, both [B, L, d] -> [B, L, d].
  V forward(const V& x, const V& read, Pass<T, Backend>& pass) const {
    const V y = attention_norm.forward(pass.add_dropped(x, out.forward(read)));
    return feed_norm.forward(pass.add_dropped(y, feed.forward(y, pass)));
  }
};

/// A layer of an encoder in which slots go along with the words: slots see themselves and the
/// words, words see everything; each side has maps of its own.
template <class T, class Backend = EigenBackend>
struct JointSlotLayer {
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;

  JointSlotSide<T, Backend> slots;  ///< maps of the slots
  JointSlotSide<T, Backend> words;  ///< maps of the words
  Index heads = 1;                  ///< H, of d / H

  template <class Visitor>
  void visit(Visitor&& see) {
    see("slots", slots);
    see("words", words);
  }

  /// The next slots and words. @param m  [B, m, d]  @param x  [B, L, d]
  /// @param visible  [B], how many of x (the last ones) anybody sees; empty for all
  /// @throws infty::ShapeError, infty::ValueError
  std::pair<V, V> forward(const V& m, const V& x, const Tensor<Index, Backend>& visible,
                          Pass<T, Backend>& pass) const {
    const V own_key = slots.key.forward(m), own_value = slots.value.forward(m);
    const V key = words.key.forward(x), value = words.value.forward(x);
    const V by_slots = slot_attention(slots.query.forward(m), own_key, own_value, key, value,
                                      {.heads = heads, .visible = visible});
    // Slots stand behind the words, which are aligned to the right: the last ones are visible.
    PlainAttentionOptions<Backend> options{.heads = heads};
    if (!visible.empty()) {
      options.visible = Tensor<Index, Backend>(visible.shape());
      const Index* const from = visible.data();
      Index* const to = options.visible.data();
      const Index more = m.dim(1);
      Backend::for_each(visible.size(), [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i] + more; });
    }
    const V by_words = scaled_dot_product_attention(words.query.forward(x), concat(key, own_key),
                                                    concat(value, own_value), options);
    V next = slots.forward(m, by_slots, pass);
    return {std::move(next), words.forward(x, by_words, pass)};
  }
};

}  // namespace infty
