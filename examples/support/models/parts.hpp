// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

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

Mixers attention_mixers(const ModelConfig& config);  ///< attention, and memories beside it
Mixers slot_mixers(const ModelConfig& config);       ///< memformer
Mixers linear_mixers(const ModelConfig& config);     ///< in the place of attention

/// Of a memory that learns while it reads, by chunks, whose steps add up: together they are no
/// longer than one step may be.
inline infty::TitansConfig titans(const ModelConfig& config) {
  constexpr Index chunk = 16;
  const auto width = static_cast<double>(config.transformer.attention_sizes().head_dim);
  return {.hidden = config.memory_width,
          .chunk = chunk,
          .weights_every = chunk,
          .max_rate = std::min(1., width / chunk)};
}

/// Feeds, lookups of n-grams, and memory tokens.
void add_feeds(const ModelConfig& config, AnyModel::Parts& parts);
void add_tokens(const ModelConfig& config, AnyModel::Parts& parts);

}  // namespace support
