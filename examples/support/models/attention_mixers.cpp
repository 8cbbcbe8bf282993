// SPDX-License-Identifier: MIT
#include <algorithm>

#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infini_attention.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/memorizing_attention.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/titans.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/signal/gibbs_density.hpp>

#include "parts.hpp"

namespace {

using support::AnyModel;
using support::Index;
using support::Mixers;
using support::ModelConfig;

template <class Mixer>
Mixers of(const ModelConfig& config, typename Mixer::Config mixer) {
  return {infty::mixers_of<Mixer>(std::move(mixer), config.transformer.attention_sizes())};
}

/// The short-term part of a memory of two, which vectors leave in groups for the other.
infty::ShortTermConfig recent(const ModelConfig& config) {
  return {.capacity = config.memory_length - config.compressed, .stride = config.segment};
}

infty::LongTermConfig long_term(const ModelConfig& config) {
  infty::LongTermConfig c = config.long_term;
  c.basis = config.compressed;
  c.sampling_seed = config.seed;
  if (config.memory == "infty-sticky") c.resampling = infty::Resampling::sticky;
  return c;
}

}  // namespace

support::Mixers support::attention_mixers(const ModelConfig& config) {
  using infty::LongTermMemory, infty::ShortTermMemory, infty::WithMemory;
  const std::string& memory = config.memory;
  const Index length = config.memory_length;
  if (memory == "none") return of<ShortTermMemory<float>>(config, {.capacity = 0});
  if (memory == "xl") return of<ShortTermMemory<float>>(config, {.capacity = length});
  if (memory == "compressive")
    return of<infty::CompressiveMemory<float>>(config, {.capacity = length - config.compressed,
                                                        .compressed_capacity = config.compressed,
                                                        .rate = config.compression_rate});
  if (memory == "infty" || memory == "infty-sticky")
    return of<infty::InftyMemory<float>>(
        config, {.attention = recent(config), .memory = long_term(config)});
  if (memory == "infty-gibbs")
    return of<WithMemory<ShortTermMemory<float>, LongTermMemory<float, infty::GibbsDensity>>>(
        config, {.attention = recent(config), .memory = long_term(config)});
  if (memory == "memorizing")
    return of<infty::MemorizingAttention<float>>(
        config, {.capacity = length, .k = std::min<Index>(32, length), .cache = 0});
  if (memory == "infini")
    return of<infty::InfiniAttention<float>>(config, {.segment = length, .delta = true});
  if (memory == "titans")
    return of<WithMemory<ShortTermMemory<float>, infty::TitansMemory<float>>>(
        config, {.attention = recent(config), .memory = titans(config)});
  return {};
}
