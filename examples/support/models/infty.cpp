// SPDX-License-Identifier: MIT
#include <infty/memory/memory_pair.hpp>

#include "model_of.hpp"

std::unique_ptr<support::Model> support::make_infty(const ModelConfig& config) {
  infty::LongTermConfig long_term = config.long_term;
  long_term.basis = config.compressed;
  long_term.sampling_seed = config.seed;
  long_term.resampling =
      config.memory == "infty-sticky" ? infty::Resampling::sticky : infty::Resampling::even;
  return std::make_unique<ModelOf<infty::InftyMemory>>(
      config,
      infty::InftyConfig{.short_term = {.capacity = config.memory_length - config.compressed,
                                        .stride = config.segment},
                         .long_term = long_term});
}
