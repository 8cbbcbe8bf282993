// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/nn/attention_sizes.hpp>

namespace infty {

/// The sizes of a `Gpt2`. Defaults are those of GPT-2 small [Radford et al. 2019], the hub's
/// `openai-community/gpt2`, but for dropout (all three .1 there).
struct Gpt2Config {
  Index vocabulary = 50257;    ///< `vocab_size`: bytes, 50,000 merges and <|endoftext|>
  Index places = 1024;         ///< `n_positions`, most tokens that are read together
  Index model_dim = 768;       ///< `n_embd`, d, width of the vectors that go through all layers
  Index layers = 12;           ///< `n_layer`, blocks, one above the other
  Index heads = 12;            ///< `n_head`, H, which divides d
  Index feed_forward = 0;      ///< `n_inner`, width inside of the feed; 0 stands for 4 d
  double norm_epsilon = 1e-5;  ///< `layer_norm_epsilon`
  bool tie_embedding = true;   ///< `tie_word_embeddings`: the head scores by the embedding's table
  /// `resid_pdrop`: share dropped while training behind attention and feed, in [0, 1).
  double dropout = 0;
  /// `embd_pdrop`: the same of the sum of embeddings and places; -1 stands for `dropout`.
  double embedding_dropout = -1;
  double attention_dropout = 0;  ///< `attn_pdrop`: the same of attention's probabilities
  /// Tokens of a full window that are read again where the window slides; 0 stands for half of the
  /// places. Of no account without a cache of keys and values.
  Index kept = 0;
  /// Blocks, from 0 on, beside whose attention a memory stands, where the mixer is a `WithMemory`;
  /// empty for all. No part of config.json.
  std::vector<Index> memory_blocks = {};
  Index begin_token = -1;  ///< `bos_token_id`; -1 for none
  Index end_token = -1;    ///< `eos_token_id`; -1 for none

  /// The width inside of the feed, with 0 resolved.
  Index resolved_feed_forward() const { return feed_forward > 0 ? feed_forward : 4 * model_dim; }

  /// The share of the embeddings' sum that is dropped, with -1 resolved.
  double resolved_embedding_dropout() const {
    return embedding_dropout == -1 ? dropout : embedding_dropout;
  }

  /// The tokens that a full window keeps, with 0 resolved.
  Index resolved_kept() const { return kept > 0 ? kept : places / 2; }

  /// Whether a memory stands beside the attention of this block.
  bool has_memory(Index block) const {
    return memory_blocks.empty() ||
           std::find(memory_blocks.begin(), memory_blocks.end(), block) != memory_blocks.end();
  }

  /// The sizes of every layer's attention.
  AttentionSizes attention_sizes() const { return {model_dim, heads, model_dim / heads}; }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("Gpt2Config", "vocabulary", vocabulary, 1);
    require_at_least("Gpt2Config", "places", places, 1);
    require_at_least("Gpt2Config", "model_dim", model_dim, 1);
    require_at_least("Gpt2Config", "layers", layers, 1);
    require_at_least("Gpt2Config", "heads", heads, 1);
    require(model_dim % heads == 0, "Gpt2Config", "model_dim is ", model_dim, ", heads is ", heads,
            ": heads must divide model_dim");
    require_at_least("Gpt2Config", "feed_forward", feed_forward, 0);
    require(math::is_finite(norm_epsilon) && norm_epsilon >= 1e-30, "Gpt2Config",
            "norm_epsilon is ", norm_epsilon, ": it must be finite and at least 1e-30");
    const auto share = [](const char* name, double value, bool also = false) {
      require(also || (math::is_finite(value) && value >= 0 && value < 1), "Gpt2Config", name,
              " is ", value, ": it must lie in [0, 1)");
    };
    share("dropout", dropout);
    share("embedding_dropout", embedding_dropout, embedding_dropout == -1);
    share("attention_dropout", attention_dropout);
    require(kept >= 0 && resolved_kept() < places, "Gpt2Config", "kept is ", kept, ", places ",
            places, ": it must lie in [0, places)");
    for (std::size_t i = 0; i < memory_blocks.size(); ++i)
      require(memory_blocks[i] < layers && memory_blocks[i] > (i == 0 ? -1 : memory_blocks[i - 1]),
              "Gpt2Config", "memory_blocks has ", memory_blocks[i],
              ": blocks rise, and lie in [0, layers = ", layers, ')');
    require(begin_token >= -1 && begin_token < vocabulary, "Gpt2Config", "begin_token is ",
            begin_token, ": it must be a token, or -1");
    require(end_token >= -1 && end_token < vocabulary, "Gpt2Config", "end_token is ", end_token,
            ": it must be a token, or -1");
    const NamedSize dim{"model_dim", model_dim}, all{"layers", layers}, four{"4", 4};
    require_sizes("Gpt2Config", {dim, {"vocabulary", vocabulary}});
    require_sizes("Gpt2Config", {dim, {"places", places}});
    require_sizes("Gpt2Config", {dim, all, four, dim});
    require_sizes("Gpt2Config", {dim, all, {"feed_forward", feed_forward}});
  }
};

}  // namespace infty
