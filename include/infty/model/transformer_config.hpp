// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/nn/adaptive_config.hpp>
#include <infty/nn/attention_sizes.hpp>

namespace infty {

/// The sizes of a `TransformerLM`; its memory has a configuration of its own. Defaults are the
/// transformer of the paper's sorting experiment [Martins et al. 2022, §4.1], but for dropout (.1
/// there) and the output layer (not tied there); `model/presets.hpp` has every experiment as it
/// was.
struct TransformerConfig {
  Index vocabulary = 21;      ///< 20 symbols and a separator
  Index model_dim = 300;      ///< d, width of the vectors that go through all layers
  Index layers = 3;           ///< blocks, one above the other
  Index heads = 6;            ///< H, of attention and of a long-term memory
  Index head_dim = 0;         ///< D, width of a head; 0 stands for model_dim / heads
  Index feed_forward = 300;   ///< width of the inner layer of the feed-forward network
  bool pre_norm = false;      ///< layer norms before attention and feed-forward, not behind them
  bool tie_embedding = true;  ///< the output layer's matrices are the embedding's
  double dropout = 0;         ///< share of elements that are dropped while training, in [0, 1)

  std::vector<Index> cutoffs = {};  ///< of the adaptive embedding and softmax: see `AdaptiveConfig`
  Index div_value = 1;              ///< the same
  Index embedding_dim = 0;          ///< the same
  /// Standard deviation of the embedding's elements at the beginning, here as in the programs of
  /// the ∞-former, Transformer-XL and GPT-2; 0 stands for 1 / sqrt(d), by which a tied model begins
  /// by repeating what it has just read: 8 nats of 65 characters.
  double embedding_deviation = .02;
  /// The adaptive softmax maps to the widths of all clusters but the first as the embedding does
  /// from them.
  bool tie_projections = true;

  /// D, with 0 resolved.
  Index resolved_head_dim() const { return head_dim > 0 ? head_dim : model_dim / heads; }

  /// The sizes of the attention that a layer's memory stands in.
  AttentionSizes attention_sizes() const { return {model_dim, heads, resolved_head_dim()}; }

  /// How the vocabulary is cut.
  AdaptiveConfig adaptive() const {
    return {vocabulary, model_dim, cutoffs, div_value, embedding_dim, embedding_deviation};
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("TransformerConfig", "vocabulary", vocabulary, 1);
    require_at_least("TransformerConfig", "model_dim", model_dim, 2);
    require(model_dim % 2 == 0, "TransformerConfig", "model_dim is ", model_dim,
            ": it must be even, for the encoding of distances");
    require_at_least("TransformerConfig", "layers", layers, 1);
    require_at_least("TransformerConfig", "heads", heads, 1);
    require_at_least("TransformerConfig", "head_dim", head_dim, 0);
    require(head_dim > 0 || model_dim % heads == 0, "TransformerConfig", "model_dim is ", model_dim,
            ", heads is ", heads, ": head_dim must be given where heads does not divide model_dim");
    require_at_least("TransformerConfig", "feed_forward", feed_forward, 1);
    adaptive().validate();
    require(math::is_finite(dropout) && dropout >= 0 && dropout < 1, "TransformerConfig",
            "dropout is ", dropout, ": it must lie in [0, 1)");
    const NamedSize dim{"model_dim", model_dim}, all{"layers", layers};
    const Index D = resolved_head_dim();
    require_sizes("TransformerConfig", {dim, all, {"heads", heads}, {"head_dim", D}});
    require_sizes("TransformerConfig", {dim, all, {"feed_forward", feed_forward}});
    require_sizes("TransformerConfig", {dim, all, dim});
  }
};

}  // namespace infty
