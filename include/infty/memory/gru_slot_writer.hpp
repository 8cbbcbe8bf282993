// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/elementwise.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/gelu_feed.hpp>
#include <infty/nn/gru_cell.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/slot_attention.hpp>
#include <infty/nn/slot_reader.hpp>

namespace infty {

/// The constants of a `GruSlotWriter`, lucidrains' program memformer's where nothing else is said.
struct GruSlotConfig {
  Index slots = 128;       ///< m, that a row has
  Index heads = 0;         ///< H of reader and writer, which divide d; 0: those of the attention
  double temperature = 1;  ///< of the writer; there is none in the program
  Index updates = 1;       ///< how often slots read a segment before the next
  Index feed_forward = 0;  ///< width of the inner layer of the feed; 0: 4 d
  SlotMaps maps = {.bias = true, .output = true};  ///< of the reader; the writer has both

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("GruSlotConfig", "slots", slots, 1);
    require_at_least("GruSlotConfig", "heads", heads, 0);
    require_at_least("GruSlotConfig", "updates", updates, 1);
    require_at_least("GruSlotConfig", "feed_forward", feed_forward, 0);
    require_sizes("GruSlotConfig", {{"slots", slots}});
    require_sizes("GruSlotConfig", {{"heads", heads}});
    require_sizes("GruSlotConfig", {{"updates", updates}});
    require_sizes("GruSlotConfig", {{"feed_forward", feed_forward}});
    require_within("GruSlotConfig", "temperature", temperature, least_divisor, largest_constant);
  }
};

/// Another writer of a Memformer, that of lucidrains' program: every slot reads itself and the
/// segment's last vectors, takes what it read in as a gated recurrent unit does, and goes through a
/// feed-forward network. It has no bias that lets it forget, and slots have any length.
template <class T, class Backend>
class GruSlotWriter {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = GruSlotConfig;

  Linear<T, Backend> query;       ///< of slots, d -> d
  Linear<T, Backend> key, value;  ///< of slots and vectors alike, d -> d
  Linear<T, Backend> out;         ///< behind the heads, d -> d
  GruCell<T, Backend> cell;       ///< takes in what a slot has read
  LayerNorm<T, Backend> norm;     ///< in front of the feed
  GeluFeed<T, Backend> feed;      ///< added to the slots
  V first;                        ///< [m, d], the slots of a fresh row

  /// Makes a writer of slots of width d; their first values are drawn from a standard normal
  /// distribution, weights as `Linear` draws them.
  /// @throws infty::ValueError for a configuration that cannot be
  GruSlotWriter(Config config, Index d, Random random)
      : query((check(config, d), d), d, random.split(0)),
        key(d, d, random.split(1)),
        value(d, d, random.split(2)),
        out(d, d, random.split(3)),
        cell(d, d, random.split(4)),
        norm(d),
        feed(d, config.feed_forward > 0 ? config.feed_forward : 4 * d, random.split(5)),
        first(Embedding<T, Backend>(config.slots, d, random.split(6)).weight),
        config_(config) {}

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
    see("cell", cell);
    see("norm", norm);
    see("feed", feed);
    see("first", first);
  }

  /// The slots of a fresh row -> [m, d].
  V initial() const { return first; }

  /// The next slots, as `SlotWriter::forward`.
  /// @throws infty::ShapeError, infty::ValueError
  V forward(const V& slots, const V& x, const Tensor<Index, Backend>& visible = {}) const {
    Pass<T, Backend> plain;  // without dropout
    const V keys = key.forward(x), values = value.forward(x);
    V m = slots;
    for (Index i = 0; i < config_.updates; ++i) {
      const V read = out.forward(slot_attention(query.forward(m), key.forward(m), value.forward(m),
                                                keys, values, options(visible)));
      m = cell.forward(read, m);
      m = m + feed.forward(norm.forward(m), plain);
    }
    return m;
  }

  /// What the first of the `updates` averages by, for those who look. @throws as `forward`
  SlotAttentionWeights<T, Backend> weights(const V& slots, const V& x,
                                           const Tensor<Index, Backend>& visible = {}) const {
    const auto guard = no_grad();
    return slot_attention_weights(query.forward(slots), key.forward(slots), key.forward(x),
                                  options(visible));
  }

 private:
  SlotAttentionOptions<Backend> options(const Tensor<Index, Backend>& visible) const {
    return {.heads = config_.heads, .temperature = config_.temperature, .visible = visible};
  }

  static void check(const Config& config, Index d) {
    config.validate();
    detail::require_slot_heads("GruSlotWriter", d, config.heads);
    require_sizes("GruSlotWriter", {{"slots", config.slots}, {"d", d}});
    require_sizes("GruSlotWriter", {{"feed_forward", config.feed_forward}, {"d", d}});
  }

  Config config_;
};

}  // namespace infty
