// SPDX-License-Identifier: MIT
#include <infty/memory/long_term_memory.hpp>

#include "model_of.hpp"

std::unique_ptr<support::gpt2::Model> support::gpt2::make_plain_or_long_term(const Source& source) {
  using Mixer = infty::WithMemory<infty::CausalAttention<float>, infty::LongTermMemory<float>>;
  return std::make_unique<ModelOf<Mixer>>(source, beside(source, infty::CausalAttentionConfig{}));
}
