// SPDX-License-Identifier: MIT
#include <infty/memory/short_term_memory.hpp>

#include "model_of.hpp"

std::unique_ptr<support::Model> support::make_xl(const ModelConfig& config) {
  return transformer_of<infty::ShortTermMemory<float>>(
      config, infty::ShortTermConfig{.capacity = config.memory_length});
}

// What `NoMemory` is, without compiling a second model.
std::unique_ptr<support::Model> support::make_none(const ModelConfig& config) {
  return transformer_of<infty::ShortTermMemory<float>>(config,
                                                       infty::ShortTermConfig{.capacity = 0});
}
