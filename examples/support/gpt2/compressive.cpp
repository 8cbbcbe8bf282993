// SPDX-License-Identifier: MIT
#include "model_of.hpp"

std::unique_ptr<support::gpt2::Model> support::gpt2::make_compressive(const Source& source) {
  return std::make_unique<ModelOf<infty::CompressiveCausalAttention<float>>>(
      source, infty::CompressiveCausalConfig{.compressed_capacity = source.memory.compressed,
                                             .rate = source.memory.rate});
}
