// SPDX-License-Identifier: MIT
#include <infty/memory/compressive_memory.hpp>

#include "model_of.hpp"

std::unique_ptr<support::Model> support::make_compressive(const ModelConfig& config) {
  return transformer_of<infty::CompressiveMemory<float>>(
      config, infty::CompressiveConfig{.capacity = config.memory_length - config.compressed,
                                       .compressed_capacity = config.compressed,
                                       .rate = config.compression_rate});
}
