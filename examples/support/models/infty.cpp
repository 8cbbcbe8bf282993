// SPDX-License-Identifier: MIT
#include <infty/memory/infty_memory.hpp>

#include "model_of.hpp"

std::unique_ptr<support::Model> support::make_infty(const ModelConfig& config) {
  return transformer_of<infty::InftyMemory<float>>(
      config, infty::InftyConfig{.attention = {.capacity = config.memory_length - config.compressed,
                                               .stride = config.segment},
                                 .memory = long_term_of(config)});
}
