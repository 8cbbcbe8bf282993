// SPDX-License-Identifier: MIT
#include <infty/memory/long_term_memory.hpp>

#include "model_of.hpp"

std::unique_ptr<support::gpt2::Model> support::gpt2::make_cached(const Source& source) {
  return std::make_unique<ModelOf<infty::CachedAttention<float>>>(source,
                                                                  infty::CachedAttentionConfig{});
}

std::unique_ptr<support::gpt2::Model> support::gpt2::make_cached_long_term(const Source& source) {
  using Mixer = infty::WithMemory<infty::CachedAttention<float>, infty::LongTermMemory<float>>;
  return std::make_unique<ModelOf<Mixer>>(
      source, beside(source, infty::CachedAttentionConfig{.capacity = source.memory.segment}));
}
