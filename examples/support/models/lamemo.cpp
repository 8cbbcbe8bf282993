// SPDX-License-Identifier: MIT
#include <infty/memory/lamemo.hpp>

#include "model_of.hpp"

std::unique_ptr<support::Model> support::make_lamemo(const ModelConfig& config) {
  return transformer_of<infty::LaMemo<float>>(
      config, infty::LaMemoConfig{.capacity = config.memory_length});
}
