// SPDX-License-Identifier: MIT
#include <infty/memory/infty_memory.hpp>

#include "model_of.hpp"

std::unique_ptr<support::Model> support::make_infty(const ModelConfig& config) {
  infty::LongTermConfig long_term = config.long_term;
  long_term.basis = config.compressed;
  long_term.sampling_seed = config.seed;
  long_term.resampling =
      config.memory == "infty-sticky" ? infty::Resampling::sticky : infty::Resampling::even;
  return transformer_of<infty::InftyMemory<float>>(
      config, infty::InftyConfig{.attention = {.capacity = config.memory_length - config.compressed,
                                               .stride = config.segment},
                                 .memory = long_term});
}
