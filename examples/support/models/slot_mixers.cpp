// SPDX-License-Identifier: MIT
#include <infty/memory/memformer.hpp>
#include <infty/memory/short_term_memory.hpp>

#include "parts.hpp"

support::Mixers support::slot_mixers(const ModelConfig& config) {
  if (config.memory != "memformer") return {};
  using Mixer = infty::Memformer<infty::ShortTermMemory<float>>;
  const Mixer::Config constants{.attention = {.capacity = config.memory_length - config.compressed},
                                .slots = {.slots = config.compressed}};
  const auto sizes = config.transformer.attention_sizes();
  return {infty::mixers_of<Mixer>(constants, sizes), [=](AnyPart stack, infty::Random random) {
            return AnyPart(Mixer::Around<AnyPart>(std::move(stack),
                                                  Mixer(constants, sizes, random).make_writer()));
          }};
}
