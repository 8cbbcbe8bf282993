// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

#include <infty/io/settings.hpp>
#include <infty/memory/compressive_causal_attention.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo_config.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/memory/mixed_config.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/sliding_window.hpp>
#include <infty/memory/uniform_config.hpp>
#include <infty/model/gpt2_config.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/beam_search.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/trainer_config.hpp>

// Every setting of every configuration, named once: see io/settings.hpp. docs/configuration.md is
// made of these lists; a test holds them to the structs.

namespace infty {

/// The names of ways from scores to a density.
constexpr std::array<std::string_view, 2> names_of(DensityParameters) {
  return {"affine", "moments"};
}
/// The names of ways to choose samples.
constexpr std::array<std::string_view, 3> names_of(Resampling) {
  return {"even", "sticky", "sticky_quantiles"};
}
/// The names of ways a last cell ends.
constexpr std::array<std::string_view, 2> names_of(LastCell) { return {"closed", "open"}; }
/// The names of compressions.
constexpr std::array<std::string_view, 5> names_of(Compression) {
  return {"mean", "max", "convolution", "dilated", "most_used"};
}
/// The names of the losses of compressions.
constexpr std::array<std::string_view, 3> names_of(ReconstructionLoss) {
  return {"none", "attention", "auto_encoding"};
}
/// The names of positions of a look-ahead.
constexpr std::array<std::string_view, 2> names_of(LaMemoPositions) {
  return {"disentangled", "transformer_xl"};
}
/// The names of ways to sum over ranks.
constexpr std::array<std::string_view, 2> names_of(Reduction) { return {"tree", "fast"}; }
/// The names of schedules.
constexpr std::array<std::string_view, 3> names_of(RateSchedule) {
  return {"cosine", "linear", "constant"};
}

/// The settings of a transformer.
template <class See>
void describe(TransformerConfig& c, See&& see) {
  see("vocabulary", c.vocabulary, "different tokens");
  see("model_dim", c.model_dim, "d");
  see("layers", c.layers, "one above the other");
  see("heads", c.heads, "of attention");
  see("head_dim", c.head_dim, "of each head; 0: width / heads");
  see("feed_forward", c.feed_forward, "width of its inner layer");
  see("pre_norm", c.pre_norm, "norms before attention and feed-forward, not behind");
  see("tie_embedding", c.tie_embedding, "the output layer is the embedding");
  see("dropout", c.dropout, "while training");
  see("cutoffs", c.cutoffs, "first tokens of the clusters of the adaptive embedding and softmax");
  see("div_value", c.div_value, "clusters behind the first are narrower by this");
  see("embedding_dim", c.embedding_dim, "width of the first cluster's vectors; 0: d");
  see("embedding_deviation", c.embedding_deviation,
      "of the embedding's elements at the beginning; 0: 1 / sqrt(d)");
  see("tie_projections", c.tie_projections,
      "the adaptive softmax maps to its clusters as the embedding from them");
}

/// The settings of a long-term memory.
template <class See>
void describe(LongTermConfig& c, See&& see) {
  see("model_dim", c.model_dim, "d; in a transformer that of its attention");
  see("heads", c.heads, "of the densities; the same");
  see("head_dim", c.head_dim, "of each head; the same");
  see("basis", c.basis, "N, basis functions");
  see("widths", c.widths, "of the LTM's Gaussian basis functions");
  see("samples", c.samples, "M, of the LTM's past at a contraction");
  see("tau", c.tau, "share of the LTM that the past is contracted to");
  see("power", c.power,
      "p > 0: contraction keeps all of the LTM's past, by no tau; 0: by tau, in a uniform memory p "
      "= 1");
  see("ridge", c.ridge, "penalty of the LTM's regression");
  see("gate", c.gate, "new vectors pass a gate into the LTM");
  see("sigma0", c.sigma0, "width of the prior of the LTM's densities");
  see("variance_floor", c.variance_floor, "least variance of the LTM's densities");
  see("parameters", c.parameters, "how scores become a density");
  see("resampling", c.resampling, "where the past is sampled at a contraction");
  see("bins", c.bins, "of the histogram that sticky memories sample by");
  see("sampling_seed", c.sampling_seed, "of the draws of sticky memories");
  see("bounded", c.bounded, "samples of the LTM's past stay within what was written");
  see("hold_short_writes", c.hold_short_writes,
      "short writes to the LTM hold each vector over several places");
  see("group", c.group, "vectors wait until there are so many, and are written together");
  see("skip_tails", c.skip_tails,
      "reads leave out basis functions that are lost in rounding, and take fewer that others are "
      "sums of");
  see("threshold", c.threshold, "vectors after which the LTM is cleared; 0: never");
  see("bias", c.bias, "keys and values of the LTM have biases; of a density of scores only");
  see("project", c.project, "what the LTM's heads read is mapped to the model's width");
  see("points", c.points, "of the integrals of a density of scores");
  see("last_cell", c.last_cell, "how the last cell of a rectangular basis ends");
  see("shifted_bins", c.shifted_bins,
      "sticky memories lose the first bin, as in ∞-Video's program");
  see("sort_draws", c.sort_draws, "places that sticky memories draw rise");
  see("midpoints", c.midpoints, "an odd number of first vectors stands at its cells' midpoints");
  see("mean_term", c.mean_term, "the KL term draws means to mu0, too");
  see("mu0", c.mu0, "of the mean term");
}

/// The settings of a short-term memory.
template <class See>
void describe(ShortTermConfig& c, See&& see) {
  see("capacity", c.capacity, "vectors in the short-term memory (STM)");
  see("stride", c.stride,
      "vectors leave the STM in groups of so many; 0: its capacity; without an LTM always 1");
}

/// The settings of attention and a memory beside it.
template <class Attention, class Memory, class See>
void describe(WithMemoryConfig<Attention, Memory>& c, See&& see) {
  see("attention", c.attention, "the attention, or memory in front");
  see("memory", c.memory, "the memory beside it, if there is one");
  see("normed", c.normed, "the memory takes in what the norm in front makes of vectors");
}

/// The settings of a compressive memory.
template <class See>
void describe(CompressiveConfig& c, See&& see) {
  see("capacity", c.capacity, "vectors that are held as they were");
  see("compressed_capacity", c.compressed_capacity, "and compressed ones");
  see("rate", c.rate, "vectors that become a compressed one");
  see("compression", c.compression, "how");
  see("loss", c.loss, "what a compression is learned by");
  see("stride", c.stride,
      "compressed vectors leave in groups of so many; 0: as many as are held; without an LTM "
      "always 1");
}

/// The settings of a LaMemo.
template <class See>
void describe(LaMemoConfig& c, See&& see) {
  see("capacity", c.capacity, "vectors that are held");
  see("look_ahead", c.look_ahead,
      "the past reads what came after it; if not, it keeps what it read");
  see("interpolation", c.interpolation, "what the past had read is averaged in; if not, forgotten");
  see("positions", c.positions, "of keys to the right");
}

/// The settings of Adam.
template <class See>
void describe(AdamConfig& c, See&& see) {
  see("learning_rate", c.learning_rate, "learning rate of Adam, at its peak");
  see("beta1", c.beta1, "of Adam");
  see("beta2", c.beta2, "of Adam");
  see("epsilon", c.epsilon, "of Adam");
  see("epsilon_first", c.epsilon_first, "it is added before the bias correction");
  see("weight_decay", c.weight_decay, "of Adam, decoupled");
}

/// The settings of a training.
template <class See>
void describe(TrainerConfig& c, See&& see) {
  see("steps", c.steps, "in all");
  see("adam", c.adam, "the optimiser");
  see("schedule", c.schedule, "of the rate");
  see("warmup_steps", c.warmup_steps, "steps in which the rate rises");
  see("last_rate", c.last_rate, "what cosine and linear fall to");
  see("rate_every", c.rate_every, "the rate changes every so many steps");
  see("max_norm", c.max_norm, "greatest global norm of the gradients; 0: any");
  see("save_every", c.save_every, "steps between checkpoints, at most");
  see("save_minutes", c.save_minutes, "the same in minutes; 0: by steps alone");
}

/// The settings of sampling.
template <class See>
void describe(Sampling& c, See&& see) {
  see("temperature", c.temperature, "0: always the likeliest");
  see("top_k", c.top_k, "of the likeliest tokens only, and of equals of the last; 0: all");
  see("top_p", c.top_p, "of the likeliest with this share only");
}

/// The names of the forms of a length penalty.
constexpr std::array<std::string_view, 2> names_of(LengthPenalty) { return {"gnmt", "power"}; }

/// The settings of a beam search.
template <class See>
void describe(BeamSearchConfig& c, See&& see) {
  see("beam", c.beam, "hypotheses that are held; 1: the likeliest token");
  see("alpha", c.alpha, "of the length penalty; 0: none");
  see("penalty", c.penalty, "its form, ((5 + n) / 6)^alpha or n^alpha");
  see("end", c.end, "the token that ends a hypothesis");
  see("longest", c.longest, "tokens of a hypothesis, its end included");
  see("best", c.best, "hypotheses that are wanted");
}

/// The settings of a GPT-2.
template <class See>
void describe(Gpt2Config& c, See&& see) {
  see("vocabulary", c.vocabulary, "tokens");
  see("places", c.places, "most tokens that are read together");
  see("model_dim", c.model_dim, "width of the vectors that go through all layers");
  see("layers", c.layers, "blocks, one above the other");
  see("heads", c.heads, "of attention");
  see("feed_forward", c.feed_forward, "width inside of the feed; 0: 4 model_dim");
  see("norm_epsilon", c.norm_epsilon, "added to variances");
  see("tie_embedding", c.tie_embedding, "the head scores by the embedding's table");
  see("dropout", c.dropout, "while training, behind attention and feed");
  see("embedding_dropout", c.embedding_dropout, "of the embeddings' sum; -1: dropout's");
  see("attention_dropout", c.attention_dropout, "of attention's probabilities");
  see("kept", c.kept, "tokens that are read again where the window slides; 0: half of the places");
  see("memory_blocks", c.memory_blocks, "beside whose attention a memory stands; empty: all");
  see("begin_token", c.begin_token, "that begins a text; -1: none");
  see("end_token", c.end_token, "that ends a text; -1: none");
}

/// The settings of a window that slides.
template <class See>
void describe(SlidingWindowConfig& c, See&& see) {
  see("longest", c.longest, "places of the window");
  see("kept", c.kept, "vectors of a full window that are read again, at the first places");
}

/// The names of ways to answer together.
constexpr std::array<std::string_view, 2> names_of(MixedReading) { return {"heads", "gate"}; }

/// The settings of several memories in one.
template <class Part, class See>
void describe(MixedConfig<Part>& c, See&& see) {
  see("model_dim", c.model_dim, "d; in a transformer that of its attention");
  see("heads", c.heads, "of the densities; the same");
  see("head_dim", c.head_dim, "of each head; the same");
  see("reading", c.reading, "each part answers its share of the heads, or a gate mixes them");
  see("parts", c.parts, "the memories; sizes are made of those above");
}

/// The names of ways to read what waits.
constexpr std::array<std::string_view, 4> names_of(Waiting) {
  return {"written", "attended", "left_out", "short_term"};
}

/// The settings of a uniform memory: those of its signal, and its own.
template <class LongTerm, class See>
void describe(UniformConfig<LongTerm>& c, See&& see) {
  describe(static_cast<LongTerm&>(c), see);
  see("block", c.block, "P, vectors or means of vectors that are written together");
  see("least_share", c.least_share, "of a block in [0, 1], at the least; 0: P / (2 N)");
  see("waiting", c.waiting, "how reads see what waits for its block");
}

/// The names of what slopes are at first.
constexpr std::array<std::string_view, 2> names_of(SlopeStart) { return {"zero", "alibi"}; }

/// The settings of causal attention over a compressed past.
template <class See>
void describe(CompressiveCausalConfig& c, See&& see) {
  see("compressed_capacity", c.compressed_capacity, "compressed vectors that are held");
  see("rate", c.rate, "vectors that become a compressed one");
  see("capacity", c.capacity, "vectors that are held as they were");
  see("compression", c.compression, "how");
  see("reconstruction", c.reconstruction, "it is learned by the reconstruction of attention");
  see("slopes", c.slopes, "of the position bias, at first");
  see("bias", c.bias, "of the four maps of attention");
}

}  // namespace infty
