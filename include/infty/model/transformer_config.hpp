// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include <infty/memory/long_term_config.hpp>

namespace infty {

/// All constants of a `TransformerLM`. Defaults are the transformer of the paper's sorting
/// experiment [Martins et al. 2022, §4.1], but for dropout (.1 there) and the output layer (not
/// tied there); `model/presets.hpp` has every experiment as it was.
struct TransformerConfig {
  Index vocabulary = 21;  ///< 20 symbols and a separator
  Index model_dim = 300;  ///< d
  Index layers = 3;
  Index heads = 6;           ///< H
  Index head_dim = 0;        ///< D; 0 stands for model_dim / heads
  Index feed_forward = 300;  ///< width of the inner layer of the feed-forward network
  Index short_term = 1024;   ///< capacity of the short-term memory; 0 for none
  /// The long-term memory of every layer; empty for none. Its model_dim, heads and head_dim are
  /// taken from here.
  std::optional<LongTermConfig> long_term = LongTermConfig{};
  /// With a long-term memory, vectors leave the short-term memory for it in groups of so many, and
  /// stay readable until then; 0 stands for the capacity of the short-term memory, or 1 without
  /// one.
  Index long_term_stride = 0;
  bool pre_norm = false;      ///< layer norms before attention and feed-forward, not behind them
  bool tie_embedding = true;  ///< the output layer's matrix is the embedding
  double dropout = 0;         ///< in [0, 1), while training

  /// D, with 0 resolved.
  Index resolved_head_dim() const { return head_dim > 0 ? head_dim : model_dim / heads; }

  /// The stride of the short-term memory: 1 where nothing takes in what leaves it.
  Index resolved_stride() const {
    if (!long_term) return 1;
    if (long_term_stride > 0) return long_term_stride;
    return short_term > 0 ? short_term : 1;
  }

  /// The long-term memory's constants, with the sizes of this transformer.
  LongTermConfig resolved_long_term() const {
    LongTermConfig config = long_term.value_or(LongTermConfig{});
    config.model_dim = model_dim;
    config.heads = heads;
    config.head_dim = resolved_head_dim();
    return config;
  }

  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const auto at_least = [](const char* name, Index value, Index least) {
      require(value >= least, "TransformerConfig", name, " is ", value, ": it must be at least ",
              least);
    };
    at_least("vocabulary", vocabulary, 1);
    at_least("model_dim", model_dim, 2);
    require(model_dim % 2 == 0, "TransformerConfig", "model_dim is ", model_dim,
            ": it must be even, for the encoding of distances");
    at_least("layers", layers, 1);
    at_least("heads", heads, 1);
    at_least("head_dim", head_dim, 0);
    require(head_dim > 0 || model_dim % heads == 0, "TransformerConfig", "model_dim is ", model_dim,
            ", heads is ", heads, ": head_dim must be given where heads does not divide model_dim");
    at_least("feed_forward", feed_forward, 1);
    at_least("short_term", short_term, 0);
    at_least("long_term_stride", long_term_stride, 0);
    require(dropout >= 0 && dropout < 1, "TransformerConfig", "dropout is ", dropout,
            ": it must lie in [0, 1)");
    if (long_term) resolved_long_term().validate();
  }
};

}  // namespace infty
