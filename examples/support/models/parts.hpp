// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/titans_config.hpp>
#include <infty/model/any_transformer_lm.hpp>

#include "../model.hpp"

namespace support {

using AnyModel = infty::AnyTransformerLM<float>;
using AnyPart = infty::AnyLayer<float>;

// The parts that a composed model chooses from, by the words of its configuration. Each of these
// is compiled by itself; a word that is not its own makes nothing.

/// What makes the mixers, and where they need something around the stack, what puts it there.
struct Mixers {
  AnyModel::Make make = {};
  AnyModel::Decorate around = {};
};

Mixers attention_mixers(const ModelConfig& config);   ///< attention, and memories beside it
Mixers contracted_mixers(const ModelConfig& config);  ///< the ∞-former's, uniform and mixed
Mixers slot_mixers(const ModelConfig& config);        ///< memformer
Mixers linear_mixers(const ModelConfig& config);      ///< in the place of attention

/// Mixers of one type, by their constants.
template <class Mixer>
Mixers mixers_by(const ModelConfig& config, typename Mixer::Config mixer) {
  return {infty::mixers_of<Mixer>(std::move(mixer), config.transformer.attention_sizes())};
}

/// The short-term part of a memory of two, which vectors leave in groups for the other, where they
/// may wait.
inline infty::ShortTermConfig recent(const ModelConfig& config) {
  return {.capacity = config.memory_length - config.compressed -
                      waiting_of(config.memory, config.contraction),
          .stride = config.segment};
}

/// Of a memory of networks of a width that learn while they read, by chunks, whose steps add up:
/// together they are no longer than one step may be. What a chunk adds is bounded: trained without,
/// two of six models ended in numbers that are none.
inline infty::TitansConfig titans(const ModelConfig& config, Index width) {
  constexpr Index chunk = 16;
  return {.hidden = config.memory_width,
          .chunk = chunk,
          .weights_every = chunk,
          .max_rate = std::min(1., static_cast<double>(width) / chunk),
          .max_surprise = 1};
}
/// The same where each head has a network of its own.
inline infty::TitansConfig titans(const ModelConfig& config) {
  return titans(config, config.transformer.attention_sizes().head_dim);
}

/// Something more around a stack, outside of what is there already.
inline void add_around(AnyModel::Parts& parts, AnyModel::Decorate more) {
  parts.around = [inner = std::move(parts.around), more = std::move(more)](AnyPart stack,
                                                                           infty::Random random) {
    return more(inner ? inner(std::move(stack), random.split(0)) : std::move(stack),
                random.split(1));
  };
}

/// Feeds, lookups of n-grams, and memory tokens.
void add_feeds(const ModelConfig& config, AnyModel::Parts& parts);
void add_tokens(const ModelConfig& config, AnyModel::Parts& parts);

}  // namespace support
