// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/memsizer_layer.hpp>
#include <infty/model/encoder_decoder.hpp>
#include <infty/model/presets.hpp>
#include <infty/nn/beam_search.hpp>
#include <infty/nn/with_places.hpp>

namespace infty::presets {

// Beside a value stands its source: P is the paper [Zhang & Cai 2022, §4], known from a survey that
// repeats its numbers; M the authors' program, jcyk/memsizer at 78e90ec, its scripts and defaults.

namespace detail {

/// The language model in which MemSizer is compared with others, but for what takes attention's
/// place.
template <class MemoryConfig>
ExperimentWith<MemoryConfig> memsizer_language_model() {
  ExperimentWith<MemoryConfig> e;
  e.model.vocabulary = detail::words_of_wikitext103;
  e.model.cutoffs = {20000, 60000};  // M
  e.model.div_value = 4;             // M
  e.model.model_dim = 1024;          // P, M
  e.model.layers = 32;               // P, M
  e.model.heads = 8;                 // P, M
  e.model.head_dim = 128;            // P; of no account to MemSizer
  e.model.feed_forward = 4096;       // P, M
  e.model.pre_norm = true;           // M
  e.model.tie_embedding = true;      // P, M
  e.model.dropout = 0.2;             // P, M
  e.segment = 512;                   // P, M
  e.batch = 18;                      // M: 3,072 tokens, three times, before a step
  e.steps = 286000;                  // M
  e.warmup_steps = 16000;            // M
  e.max_norm = 0.1;                  // M
  return e;
}

}  // namespace detail

/// MemSizer's language model of WikiText-103, for a `TransformerLM<PlacedMixer<MemSizer<T>>>`,
/// which adds positions to the embeddings, as the program does. It is trained by Nesterov's method
/// (M), whose rate is none for Adam: `learning_rate` is left at 0. The program drops layers and
/// drops out of the weights of slots, which a `TransformerLM` does not.
inline ExperimentWith<MemSizerConfig> memsizer_wikitext103() {
  auto e = detail::memsizer_language_model<MemSizerConfig>();
  e.memory.slots = 32;        // P, M
  e.memory.bias = true;       // M
  e.memory.query_scale = 32;  // M
  e.memory.value_scale = 1;   // M
  return e;
}

/// The decoder layer of MemSizer's translation, six of them with 16 heads and width 1,024 (P, M).
inline MemSizerLayerConfig memsizer_translation() {
  MemSizerLayerConfig layer;
  layer.self = {.slots = 4, .bias = true, .query_scale = 8, .value_scale = 8};    // P; M: biases
  layer.cross = {.slots = 32, .bias = true, .query_scale = 8, .value_scale = 8};  // P; M: biases
  layer.feed_forward = 4096;                                                      // P, M
  layer.norms_in_front = false;                                                   // M
  return layer;
}

/// The sizes of MemSizer's translation, of a vocabulary that depends on the languages (here that of
/// `TransformerConfig`): a plain encoder and decoder layers of `memsizer_translation`. Whether the
/// languages share a table is not known here.
inline EncoderDecoderConfig memsizer_translation_model() {
  TransformerConfig side;
  side.model_dim = 1024;         // P, M
  side.layers = 6;               // P, M
  side.heads = 16;               // P, M
  side.feed_forward = 4096;      // P, M
  side.dropout = 0.3;            // P
  side.embedding_deviation = 0;  // 1 / sqrt(d)
  return {.encoder = side, .decoder = side};
}

/// How it searches: fairseq's penalty, the logarithm over the number of tokens (P). The end and the
/// greatest length are the vocabulary's and the text's.
inline BeamSearchConfig memsizer_translation_search() {
  return {.beam = 5, .alpha = 1, .penalty = LengthPenalty::power};  // P
}

}  // namespace infty::presets
