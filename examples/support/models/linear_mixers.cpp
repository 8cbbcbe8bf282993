// SPDX-License-Identifier: MIT
#include <infty/memory/delta_net.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/memory/titans.hpp>
#include <infty/model/presets/linear_attention.hpp>

#include "parts.hpp"

support::Mixers support::linear_mixers(const ModelConfig& config) {
  const auto sizes = config.transformer.attention_sizes();
  const std::string& mixer = config.mixer;
  const auto linear = [&](const infty::LinearAttentionConfig& constants) {
    return Mixers{infty::mixers_of<infty::LinearAttention<float>>(constants, sizes)};
  };
  if (mixer == "linear") return linear({});
  if (mixer == "rfa") return linear(infty::presets::rfa());
  if (mixer == "t2r") return linear(infty::presets::t2r());
  if (mixer == "delta-net") return {infty::mixers_of<infty::DeltaNet<float>>({}, sizes)};
  if (mixer == "gated-delta-net") return {infty::mixers_of<infty::GatedDeltaNet<float>>({}, sizes)};
  if (mixer == "memsizer")
    return {infty::mixers_of<infty::MemSizer<float>>({.slots = config.memory_length}, sizes)};
  if (mixer == "titans-layer")
    return {infty::mixers_of<infty::Titans<float>>(titans(config), sizes)};
  return {};
}
