// SPDX-License-Identifier: MIT
#include <limits>

#include <infty/memory/delta_net.hpp>
#include <infty/memory/engram_config.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/gru_slot_writer.hpp>
#include <infty/memory/infini_config.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memorizing_config.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/memory/product_key_config.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/slot_writer.hpp>
#include <infty/memory/titans_config.hpp>
#include <infty/nn/adaptive_config.hpp>
#include <infty/train/adam_config.hpp>

#include "support/catch.hpp"

namespace memory_constants_tests {

/// Refuses numbers that `float` has not, whatever it is that a member stands for.
template <class Config>
void check(Config config, double Config::*constant, bool divides) {
  using Limits = std::numeric_limits<double>;
  config.*constant = 1e30;
  CHECK_NOTHROW(config.validate());
  for (const double wrong : {1e31, 1e39, 1e300, Limits::infinity(), Limits::quiet_NaN()}) {
    config.*constant = wrong;
    CHECK_THROWS_AS(config.validate(), infty::ValueError);
  }
  config.*constant = 1e-30;
  CHECK_NOTHROW(config.validate());
  for (const double small : {1e-31, 1e-46, 1e-300}) {
    config.*constant = small;
    if (divides)
      CHECK_THROWS_AS(config.validate(), infty::ValueError);
    else
      CHECK_NOTHROW(config.validate());
  }
}

}  // namespace memory_constants_tests

TEST_CASE("constants that float has not are refused, of every memory") {
  using namespace infty;
  using memory_constants_tests::check;
  check(GatedDeltaNetConfig{}, &GatedDeltaNetConfig::scale, false);
  check(GatedDeltaNetConfig{}, &GatedDeltaNetConfig::length_epsilon, true);
  check(GatedDeltaNetConfig{}, &GatedDeltaNetConfig::norm_epsilon, true);
  check(DeltaNetConfig{}, &DeltaNetConfig::scale, false);
  check(DeltaRuleOptions{}, &DeltaRuleOptions::scale, false);
  check(InfiniConfig{}, &InfiniConfig::rotary_base, true);
  check(InfiniConfig{}, &InfiniConfig::gate, false);
  check(SlotConfig{.slots = 1, .heads = 1}, &SlotConfig::temperature, true);
  check(GruSlotConfig{.slots = 1, .heads = 1}, &GruSlotConfig::temperature, true);
  check(AdaptiveConfig{.vocabulary = 4, .model_dim = 4}, &AdaptiveConfig::deviation, false);
  check(LinearAttentionConfig{}, &LinearAttentionConfig::scale, false);
  check(LinearAttentionConfig{}, &LinearAttentionConfig::floor, false);
  check(ProductKeyConfig{}, &ProductKeyConfig::key_bound, false);
  check(TitansConfig{.model_dim = 4, .heads = 1, .head_dim = 4}, &TitansConfig::max_rate, true);
  check(TitansConfig{.model_dim = 4, .heads = 1, .head_dim = 4}, &TitansConfig::max_surprise, true);
  check(MemorizingConfig{}, &MemorizingConfig::bias_scale, false);
  check(MemorizingConfig{}, &MemorizingConfig::temperature, false);
  check(MemorizingConfig{}, &MemorizingConfig::epsilon, true);
  check(MemorizingConfig{}, &MemorizingConfig::null_score, false);
  check(MemSizerConfig{}, &MemSizerConfig::query_scale, true);
  check(MemSizerConfig{}, &MemSizerConfig::value_scale, true);
  check(InfiniConfig{}, &InfiniConfig::floor, true);
  check(MemoryTokensConfig{}, &MemoryTokensConfig::deviation, false);
  check(RecurrentTokensConfig{}, &RecurrentTokensConfig::deviation, false);
  check(AdamConfig{}, &AdamConfig::learning_rate, false);
  check(AdamConfig{}, &AdamConfig::weight_decay, false);
  EngramConfig engram;
  engram.lookup = {0, 1, 2, 3};
  engram.width = engram.heads;
  engram.table_sizes.assign(static_cast<std::size_t>(engram.max_ngram - 1), 7);
  for (const auto constant :
       {&EngramConfig::gate_epsilon, &EngramConfig::gate_floor, &EngramConfig::epsilon})
    check(engram, constant, true);
}
