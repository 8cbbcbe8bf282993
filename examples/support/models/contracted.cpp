// SPDX-License-Identifier: MIT
#include "../contracted.hpp"

#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/uniform_memory.hpp>
#include <infty/memory/with_memory.hpp>

#include "parts.hpp"

support::Mixers support::contracted_mixers(const ModelConfig& config) {
  using infty::ShortTermMemory, infty::WithMemory;
  using Uniform = infty::UniformMemory<float>;
  if (!writes_blocks(config.memory, config.contraction) || config.memory == "infty-gibbs")
    return {};
  const infty::LongTermConfig one = long_term_of(config);
  const std::string name = contraction_of(config.memory, config.contraction);
  if (name == "uniform")
    return mixers_by<WithMemory<ShortTermMemory<float>, Uniform>>(
        config, {.attention = recent(config), .memory = uniform_config(one, config.contraction)});
  return mixers_by<WithMemory<ShortTermMemory<float>, infty::MixedMemory<Uniform>>>(
      config, {.attention = recent(config), .memory = mixed_config(one, config.contraction, name)});
}
