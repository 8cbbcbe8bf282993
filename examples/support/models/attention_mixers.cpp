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

support::Mixers support::attention_mixers(const ModelConfig& config) {
  using infty::LongTermMemory, infty::ShortTermMemory, infty::WithMemory;
  const std::string& memory = config.memory;
  const std::string contraction = contraction_of(memory, config.contraction);
  const Index length = config.memory_length;
  if (memory == "none") return mixers_by<ShortTermMemory<float>>(config, {.capacity = 0});
  if (memory == "xl") return mixers_by<ShortTermMemory<float>>(config, {.capacity = length});
  if (memory == "compressive")
    return mixers_by<infty::CompressiveMemory<float>>(config,
                                                      {.capacity = length - config.compressed,
                                                       .compressed_capacity = config.compressed,
                                                       .rate = config.compression_rate});
  if (is_infty(memory) && contraction != "fixed" && contraction != "power") return {};
  if (is_infty(memory) && memory != "infty-gibbs")
    return mixers_by<infty::InftyMemory<float>>(
        config, {.attention = recent(config), .memory = long_term_of(config)});
  if (memory == "infty-gibbs")
    return mixers_by<
        WithMemory<ShortTermMemory<float>, LongTermMemory<float, infty::GibbsDensity>>>(
        config, {.attention = recent(config), .memory = long_term_of(config)});
  if (memory == "memorizing") {
    using Stored = infty::BFloat16;
    const infty::MemorizingConfig all = memorizing_of(config);
    if (config.stored == "float32")
      return mixers_by<infty::MemorizingAttention<float>>(config, all);
    return mixers_by<infty::MemorizingAttention<float, infty::EigenBackend, Stored>>(config, all);
  }
  if (is_infini(memory))
    return mixers_by<infty::InfiniAttention<float>>(
        config, {.segment = length, .delta = memory == "infini"});
  if (memory == "titans")
    return mixers_by<WithMemory<ShortTermMemory<float>, infty::TitansMemory<float>>>(
        config, {.attention = recent(config), .memory = titans(config)});
  return {};
}
