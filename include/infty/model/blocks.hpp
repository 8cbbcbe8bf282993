// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <infty/memory/memory.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/transformer_config.hpp>

namespace infty {

/// A stack of blocks of a mixer and a feed-forward network with fresh weights, as a `TransformerLM`
/// has it, and as an encoder is one with a mixer that sees both ways. Mixers behind the first are
/// its siblings.
/// @throws infty::ValueError if one of the configurations is not valid
template <class Mixer>
Layers<Block<Mixer>> blocks(const TransformerConfig& config, const typename Mixer::Config& memory,
                            const Random& random) {
  using T = typename Mixer::Scalar;
  using Backend = typename Mixer::BackendType;
  config.validate();
  const AttentionSizes sizes = config.attention_sizes();
  Layers<Block<Mixer>> made;
  for (Index i = 0; i < config.layers; ++i) {
    const Random own = random.split(static_cast<std::uint64_t>(2 + i));
    const auto make = [&](const Random& r) { return Mixer(memory, sizes, r); };
    made.layers.push_back(
        {.mixer = i == 0 ? make(own) : sibling_of(made.layers.front().mixer, own, make),
         .mixer_norm = LayerNorm<T, Backend>(config.model_dim),
         .feed = FeedForward<T, Backend>(config.model_dim, config.feed_forward, own.split(1)),
         .feed_norm = LayerNorm<T, Backend>(config.model_dim),
         .norms_in_front = config.pre_norm});
  }
  return made;
}

}  // namespace infty
