// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

#include <infty/io/settings.hpp>
#include <infty/memory/associative_memory.hpp>
#include <infty/memory/delta_net.hpp>
#include <infty/memory/engram_config.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/gru_slot_writer.hpp>
#include <infty/memory/infini_config.hpp>
#include <infty/memory/joint_slots.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memformer.hpp>
#include <infty/memory/memorizing_config.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/memsizer_layer.hpp>
#include <infty/memory/product_key_config.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/slot_writer.hpp>
#include <infty/memory/titans_config.hpp>
#include <infty/model/memory_encoder.hpp>

// Every setting of the family of memories, named once, as model/settings.hpp has those of the
// ∞-former and its peers.

namespace infty {

/// The settings of a MemSizer.
template <class See>
void describe(MemSizerConfig& c, See&& see) {
  see("slots", c.slots, "k, of the memory");
  see("bias", c.bias, "the three maps have biases");
  see("query_scale", c.query_scale, "variance of the first weights of queries is divided by this");
  see("value_scale", c.value_scale, "the same of what is written");
  see("train_keys", c.train_keys, "Φ is trained, and not fixed as it was drawn");
}

/// The settings of a decoder layer with MemSizer.
template <class See>
void describe(MemSizerLayerConfig& c, See&& see) {
  see("self", c.self, "of the target");
  see("cross", c.cross, "of the source");
  see("feed_forward", c.feed_forward, "width of its inner layer");
  see("norms_in_front", c.norms_in_front, "norms in front of each part, not behind");
}

/// The names of what may stand behind the sum of a product-key memory.
constexpr std::array<std::string_view, 3> names_of(ProductKeyOutput) {
  return {"sum", "linear", "silu_gated"};
}

/// The settings of a product-key memory.
template <class See>
void describe(ProductKeyConfig& c, See&& see) {
  see("sub_keys", c.sub_keys, "n, keys of each half; there are n² slots");
  see("heads", c.heads, "each with keys of its own; their sums are added");
  see("k", c.k, "slots that a head reads");
  see("key_dim", c.key_dim, "of a head's query, both halves together");
  see("value_dim", c.value_dim, "width of the values; 0: that of the model");
  see("query_hidden", c.query_hidden, "widths of the query network's hidden layers");
  see("query_batch_norm", c.query_batch_norm, "behind every map of the query network");
  see("batch_norm_momentum", c.batch_norm_momentum, "share of a batch in the running statistics");
  see("batch_norm_epsilon", c.batch_norm_epsilon, "added to the variance");
  see("input_dropout", c.input_dropout, "of what the query network sees");
  see("query_dropout", c.query_dropout, "of the queries");
  see("value_dropout", c.value_dropout, "of the sum of values");
  see("key_bound", c.key_bound, "keys are drawn from ± this; 0: 1 / √(key_dim / 2)");
  see("output", c.output, "what becomes of the sum of values");
  see("gate", c.gate, "times sigmoid(w · x + b), a number a place");
  see("row_gradients", c.row_gradients, "the values' gradient, and Adam's step, are by rows");
}

/// The names of ways to merge what was retrieved with the local context.
constexpr std::array<std::string_view, 2> names_of(MemorizingMerge) { return {"gate", "joint"}; }

/// The settings of a Memorizing Transformer's attention.
template <class See>
void describe(MemorizingConfig& c, See&& see) {
  see("capacity", c.capacity, "keys and values that a row remembers");
  see("k", c.k, "of them that a query retrieves");
  see("merge", c.merge, "of what was retrieved with the local context");
  see("key_heads", c.key_heads, "heads of keys and values: 0 as many as of queries, or 1");
  see("normalized", c.normalized, "keys and queries have length 1, and heads a temperature");
  see("cache", c.cache, "vectors before the segment that local attention sees");
  see("window", c.window, "how far back it sees at most; 0: any distance");
  see("overlapping", c.overlapping, "the memory holds what the cache holds, too");
  see("buckets", c.buckets, "of the bias of distances in local attention; 0: none");
  see("max_distance", c.max_distance, "from which on distances share a bucket");
  see("bias_scale", c.bias_scale, "of that bias; 0: 1 with a gate, sqrt(head_dim) jointly");
  see("temperature", c.temperature, "of normalised scores at first; 0: 1 with a gate, 20 jointly");
  see("gate_bias", c.gate_bias, "at first; sigmoid of it is the share of what was retrieved");
  see("epsilon", c.epsilon, "under the root of a length, with a gate");
  see("strict", c.strict, "a place does not see itself");
  see("null_score", c.null_score, "where strict, of one more key, with value 0");
  see("attend_to_nothing", c.attend_to_nothing, "a cache that is not full has zeros to attend to");
}

/// The settings of a neural memory.
template <class See>
void describe(TitansConfig& c, See&& see) {
  see("model_dim", c.model_dim, "d; in a transformer that of its attention");
  see("heads", c.heads, "networks that learn side by side; the same");
  see("head_dim", c.head_dim, "width of what goes into a network and comes out; the same");
  see("depth", c.depth, "layers of a network");
  see("hidden", c.hidden, "width between its layers; 0: 4 head_dim");
  see("chunk", c.chunk, "vectors that are learned together");
  see("weights_every", c.weights_every,
      "vectors after which gradients are taken at new weights; 0: always at the first");
  see("max_rate", c.max_rate, "greatest step of learning");
  see("max_surprise", c.max_surprise, "greatest length of what a chunk adds to a matrix; 0: any");
  see("momentum", c.momentum, "what surprised goes on doing so");
  see("silu", c.silu, "keys, values and queries pass SiLU");
  see("unit", c.unit, "keys and queries have length 1");
  see("convolution", c.convolution, "taps behind the projections; 0: no convolutions");
}

/// The settings of an Engram.
template <class See>
void describe(EngramConfig& c, See&& see) {
  see("lookup", c.lookup, "the compressed id of every token");
  see("pad", c.pad, "the token in front of the first");
  see("max_ngram", c.max_ngram, "tokens of the longest n-gram; the shortest has 2");
  see("heads", c.heads, "tables of each n");
  see("width", c.width, "of what is found for each n, all heads side by side");
  see("table_sizes", c.table_sizes, "rows of a table of each n, at least");
  see("layer", c.layer, "this layer's number, which its hashes are drawn by");
  see("layers", c.layers, "all layers that have tables; none: this one");
  see("seed", c.seed, "of the hashes");
  see("multipliers", c.multipliers, "of the hashes; none: drawn");
  see("kernel", c.kernel, "taps of the convolution");
  see("dilation", c.dilation, "places between its taps; 0: max_ngram");
  see("branches", c.branches, "of the residual stream");
  see("gate_root", c.gate_root, "the gate takes a root of its score, as the program does");
  see("gate_floor", c.gate_floor, "least score under that root");
  see("gate_epsilon", c.gate_epsilon, "of the norms in the gate; 0: the scalar's smallest step");
  see("epsilon", c.epsilon, "of the norm in front of the convolution");
  see("draw_taps", c.draw_taps, "the convolution does not begin as zeros");
}

/// The names of features of queries and keys.
constexpr std::array<std::string_view, 5> names_of(FeatureMap) {
  return {"identity", "elu_plus_one", "gaussian", "arc_cosine", "learned"};
}

/// The settings of linear attention.
template <class See>
void describe(LinearAttentionConfig& c, See&& see) {
  see("features", c.features, "of queries and keys");
  see("normalized", c.normalized, "answers are divided by what all keys weigh");
  see("epsilon", c.epsilon, "added to that");
  see("scale", c.scale, "of the answers; 0: 1 / sqrt(head_dim)");
  see("chunk", c.chunk, "places that go through matrix products together; 0: one by one");
  see("feature_dim", c.feature_dim, "of a random or learned map; 0: 64 random, 32 learned ones");
  see("floor", c.floor, "least number that answers are divided by; 0: 0.01 of Gaussian features");
  see("gate", c.gate, "the memory fades, as much as its inputs say");
  see("bias", c.bias, "of the maps of queries, keys, values and answers");
}

/// The settings of a DeltaNet.
template <class See>
void describe(DeltaNetConfig& c, See&& see) {
  see("value_dim", c.value_dim, "width of a head's values; 0: that of its keys");
  see("convolution", c.convolution,
      "taps of the convolutions of queries, keys and values; 0: none");
  see("convolution_bias", c.convolution_bias, "whether these have a bias");
  see("gate", c.gate, "answers pass a gate");
  see("negative_eigenvalues", c.negative_eigenvalues, "β up to 2");
  see("scale", c.scale, "of the answers; 0: 1 / sqrt(head_dim)");
  see("norm_epsilon", c.norm_epsilon, "of the norm of answers");
  see("length_epsilon", c.length_epsilon, "of the squared length of queries and keys");
  see("chunk", c.chunk, "places that go through matrix products together; 0: one by one");
}

/// The settings of a Gated DeltaNet.
template <class See>
void describe(GatedDeltaNetConfig& c, See&& see) {
  see("value_heads", c.value_heads, "heads of values, which share those of keys; 0: as many");
  see("value_dim", c.value_dim, "width of a head's values; 0: twice that of its keys");
  see("convolution", c.convolution,
      "taps of the convolutions of queries, keys and values; 0: none");
  see("convolution_bias", c.convolution_bias, "whether these have a bias");
  see("decay", c.decay, "the memory fades");
  see("gate", c.gate, "answers pass a gate");
  see("negative_eigenvalues", c.negative_eigenvalues, "β up to 2");
  see("scale", c.scale, "of the answers; 0: 1 / sqrt(head_dim)");
  see("norm_epsilon", c.norm_epsilon, "of the norm of answers");
  see("length_epsilon", c.length_epsilon, "of the squared length of queries and keys");
  see("chunk", c.chunk, "places that go through matrix products together; 0: one by one");
}

/// The settings of an Infini-attention.
template <class See>
void describe(InfiniConfig& c, See&& see) {
  see("segment", c.segment, "N, tokens that are collected and then written to the memory at once");
  see("delta", c.delta, "what the memory holds of a key already is taken off its value");
  see("rotary_base", c.rotary_base, "of the positions within a segment; 0: none");
  see("floor", c.floor, "least mass that a reading is divided by");
  see("gate", c.gate, "of each head at first; 0: half of the memory and half of the segment");
  see("gate_on_local", c.gate_on_local, "the gate weighs the segment and not the memory");
  see("ungated_first", c.ungated_first, "no gate before there is a memory");
  see("bias", c.bias, "of queries, keys, values and answers");
}

/// The settings of an associative memory.
template <class See>
void describe(AssociativeConfig& c, See&& see) {
  see("heads", c.heads, "memories side by side");
  see("key_dim", c.key_dim, "of keys and queries of all heads, before their features");
  see("nu", c.nu, "of the features, DPFP");
  see("correction", c.correction, "a key that is known already adds less to the mass");
  see("unit_features", c.unit_features, "features are of length 1");
  see("denominator", c.denominator, "what is read is divided by its mass");
  see("gating", c.gating, "what is written is weighed by dimension, not by head");
  see("bounded", c.bounded, "a segment writes no more than the memory takes without growing");
  see("epsilon", c.epsilon, "beside masses");
  see("feature_floor", c.feature_floor, "least length of features that are made 1 long");
}

/// The settings of the maps of slots.
template <class See>
void describe(SlotMaps& c, See&& see) {
  see("bias", c.bias, "of every map");
  see("output", c.output, "a map behind the heads");
}

/// The settings of a Memformer's slots, as the paper has them.
template <class See>
void describe(SlotConfig& c, See&& see) {
  see("slots", c.slots, "of a row");
  see("heads", c.heads, "of reader and writer; 0: those of the attention");
  see("temperature", c.temperature, "of the writer; lower is sharper");
  see("maps", c.maps, "what reader and writer have beside weights");
}

/// The settings of a Memformer's slots, as a program has them.
template <class See>
void describe(GruSlotConfig& c, See&& see) {
  see("slots", c.slots, "of a row");
  see("heads", c.heads, "of reader and writer; 0: those of the attention");
  see("temperature", c.temperature, "of the writer; lower is sharper");
  see("updates", c.updates, "how often slots read a segment");
  see("feed_forward", c.feed_forward, "width of the inner layer of the slots' feed; 0: 4 d");
  see("maps", c.maps, "what the reader has beside weights");
}

/// The settings of a Memformer.
template <class Attention, class Writer, class See>
void describe(MemformerConfig<Attention, Writer>& c, See&& see) {
  if constexpr (requires { describe(c.attention, see); })
    see("attention", c.attention, "the attention to the segment");
  see("slots", c.slots, "the slots, their reader and their writer");
}

/// The settings of slots that go through an encoder beside the words.
template <class See>
void describe(JointSlotConfig& c, See&& see) {
  see("slots", c.slots, "of a row");
  see("layers", c.layers, "one above the other");
  see("heads", c.heads, "of attention");
  see("feed_forward", c.feed_forward, "width of the inner layers of the feeds");
}

/// The settings of memory tokens that are the same in every segment.
template <class See>
void describe(MemoryTokensConfig& c, See&& see) {
  see("tokens", c.tokens, "memory tokens in front of every segment");
  see("behind", c.behind, "they stand behind it as well");
  see("both_ways", c.both_ways, "tokens see each other both ways");
  see("read_past", c.read_past, "tokens see what attention holds of earlier segments");
  see("held", c.held, "attention holds tokens as it holds words");
  see("shifted", c.shifted, "positions of keys ahead as the original's shift has them");
  see("deviation", c.deviation, "of the normal distribution of the first vectors");
}

/// The settings of recurrent memory tokens.
template <class See>
void describe(RecurrentTokensConfig& c, See&& see) {
  see("tokens", c.tokens, "memory tokens on either side of a segment");
  see("behind", c.behind, "they stand behind it as well, to be written there");
  see("both_ways", c.both_ways, "tokens see each other both ways");
  see("read_past", c.read_past, "tokens see what attention holds of earlier segments");
  see("held", c.held, "attention holds tokens as it holds words");
  see("shifted", c.shifted, "positions of keys ahead as the original's shift has them");
  see("back_through", c.back_through, "segments that a gradient flows back through; 0: all");
  see("deviation", c.deviation, "of the normal distribution of the first vectors");
}

/// The names of a Memory Transformer's encoders with blocks of their own for the memory.
constexpr std::array<std::string_view, 2> names_of(MemoryEncoding) {
  return {"control", "bottleneck"};
}

/// The settings of an encoder's layer with a block of its own for the memory.
template <class See>
void describe(MemoryEncoderConfig& c, See&& see) {
  see("encoding", c.encoding, "what the sequence reads");
  see("feed_forward", c.feed_forward, "width of the feeds' inner layers");
}

}  // namespace infty
