// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/recurrent_tokens.hpp>
#include <infty/model/encoder_decoder.hpp>
#include <infty/model/memory_encoder.hpp>
#include <infty/model/presets.hpp>

namespace infty::presets {

/// Constants of a Transformer-XL inside of memory tokens.
template <class TokensConfig>
struct TokensAround {
  TokensConfig tokens;        ///< of the decorator
  ShortTermConfig attention;  ///< of the attention of each layer inside
};

// M is the script pytorch/run_wt103_base_memgpt_150.sh of https://github.com/booydar/LM-RMT at
// 2c4caa9, R the paper [Bulatov et al. 2022], which is known from summaries only: unverified, for
// the repository has no script of its runs of WikiText-103 with ten tokens. Those that write at the
// end (run_wt103_base_memgpt_75-75.sh) have the sizes, rate, batch and steps of M. What neither
// says is Transformer-XL's.

/// The Memory Transformer's language model of WikiText-103: 150 tokens in front of segments of 150
/// words, and no cache.
inline ExperimentWith<TokensAround<MemoryTokensConfig>> memory_transformer_wikitext103() {
  auto e = detail::wikitext103<TokensAround<MemoryTokensConfig>>();  // M: as Transformer-XL's
  e.memory.tokens = {.tokens = 150};                                 // M
  e.memory.attention = {.capacity = 0};                              // M, mem_len
  return e;
}

/// The Recurrent Memory Transformer's: ten tokens on either side of segments of 150 words, a
/// gradient through four segments back, and no cache.
inline ExperimentWith<TokensAround<RecurrentTokensConfig>> recurrent_memory_wikitext103() {
  auto e = detail::wikitext103<TokensAround<RecurrentTokensConfig>>();
  // R for the numbers; what tokens see is the program's (tests/golden/rmt_xl.safetensors).
  e.memory.tokens = {
      .tokens = 10, .both_ways = true, .read_past = false, .held = true, .back_through = 4};
  e.memory.attention = {.capacity = 0};  // M
  return e;
}

/// The Memory Transformer's translation: sizes, and what its encoder has beside.
struct MemoryTranslation {
  EncoderDecoderConfig model;   ///< sizes of both sides
  MemoryTokensConfig tokens;    ///< around the encoder's layers
  MemoryEncoderConfig encoder;  ///< of a MemCtrl or a MemBottleneck, which have no plain layers
};

/// The encoder-decoder of WMT-14, German to English, with memory tokens [Burtsev et al. 2020,
/// §4.1]: six layers on either side, as a survey of the paper says, or four, and the base
/// transformer's sizes [Vaswani et al. 2017, Table 3], which it has as its rival. Of how many
/// tokens there were, ten are one; how it is trained is not known here.
inline MemoryTranslation memory_transformer_translation(
    MemoryEncoding encoding = MemoryEncoding::control) {
  TransformerConfig side;
  side.model_dim = 512;
  side.layers = 6;
  side.heads = 8;
  side.feed_forward = 2048;
  side.dropout = .1;
  side.embedding_deviation = 0;  // 1 / sqrt(d)
  return {.model = {.encoder = side, .decoder = side},
          .tokens = {.tokens = 10},
          .encoder = {.encoding = encoding, .feed_forward = side.feed_forward}};
}

}  // namespace infty::presets
