// SPDX-License-Identifier: MIT
#include <utility>

#include <infty/memory/associative_layer.hpp>
#include <infty/memory/memory_in_front.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/titans_memory.hpp>
#include <infty/memory/tokens_behind.hpp>

#include "parts.hpp"

namespace {

using support::AnyModel;
using support::AnyPart;

/// The tokens of a Memory Transformer, under its rules where there is attention that knows of any.
infty::MemoryTokensConfig memory_tokens(const support::ModelConfig& config) {
  infty::MemoryTokensConfig tokens{.tokens = config.token_count};
  const bool known = config.mixer == "attention" && config.memory != "compressive" &&
                     config.memory != "memorizing" && !support::is_infini(config.memory);
  if (!known) {
    tokens.both_ways = tokens.held = false;
    tokens.read_past = true;
  }
  return tokens;
}

}  // namespace

void support::add_tokens(const ModelConfig& config, AnyModel::Parts& parts) {
  const Index d = config.transformer.model_dim, m = config.token_count;
  if (config.tokens == "memory")
    add_around(parts, [=, tokens = memory_tokens(config)](AnyPart stack, infty::Random random) {
      return AnyPart(infty::MemoryTokens<AnyPart>(std::move(stack), tokens, d, random));
    });
  if (config.tokens == "recurrent")
    add_around(parts, [=](AnyPart stack, infty::Random random) {
      return AnyPart(infty::RecurrentTokens<AnyPart>(std::move(stack), {.tokens = m}, d, random));
    });
  if (config.tokens == "titans-front")
    add_around(parts, [=, front = titans(config, d)](AnyPart stack, infty::Random random) {
      using Front = infty::MemoryInFront<AnyPart, infty::TitansMemory<float>>;
      return AnyPart(Front(std::move(stack), front, m, d, random));
    });
  if (config.tokens == "associative") {
    infty::AssociativeConfig associative;
    if (config.memory_width > 0) associative.key_dim = config.memory_width;
    parts.block = [=, inner = std::move(parts.block)](Index i, AnyPart block,
                                                      infty::Random random) {
      if (inner) block = inner(i, std::move(block), random.split(0));
      return AnyPart(
          infty::AssociativeLayer<AnyPart>(std::move(block), associative, d, random.split(1)));
    };
    add_around(parts, [=](AnyPart stack, infty::Random random) {
      return AnyPart(infty::TokensBehind<AnyPart>(std::move(stack), m, d, random));
    });
  }
}
