// SPDX-License-Identifier: MIT
// What cannot be is refused by every configuration of the family, in words that name the field:
// each number of each of them, one after the other, and what does not go together.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/memory/memorizing_attention.hpp>
#include <infty/memory/product_key_memory.hpp>
#include <infty/memory/titans.hpp>
#include <infty/memory/with_engram.hpp>
#include <infty/model/family_settings.hpp>
#include <infty/model/settings.hpp>

#include "support/catch.hpp"

namespace configurations_tests {

using infty::Index;

/// What f() says where it throws infty::ValueError; else nothing.
template <class F>
std::string said_by(const F& f) {
  try {
    f();
  } catch (const infty::ValueError& error) {
    return error.what();
  }
  return {};
}

/// What is said of a configuration with its setting number `at` made this value.
template <class C, class Value>
std::string said_with(C config, std::size_t at, Value value) {
  std::size_t i = 0;
  describe(config, [&]<class Field>(const char*, Field& field, const char*) {
    if (i++ != at) return;
    if constexpr (std::is_same_v<Field, Value>) field = value;
    if constexpr (std::is_same_v<Field, std::vector<Value>>) field.assign(1, value);
  });
  return said_by([&] { config.validate(); });
}

/// Every number of a valid configuration, out of its range. Fields named in `zero` may be 0, those
/// in `any` anything that is finite, and those in `elsewhere` are checked by what is made of them.
template <class C>
void refuses(const std::string& what, const C& good, const std::vector<std::string>& zero = {},
             const std::vector<std::string>& any = {},
             const std::vector<std::string>& elsewhere = {}) {
  CHECK(said_by([&] { good.validate(); }) == "");
  C listed = good;
  std::size_t at = 0;
  const auto among = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  describe(listed, [&]<class Field>(const char* name, Field&, const char*) {
    const auto refused = [&](auto value) {
      const std::string said = said_with(good, at, value);
      CAPTURE(what, name, value, said);
      CHECK(said.find(std::string(" ") + name) != std::string::npos);
    };
    using Numbers = std::vector<double>;
    if (among(elsewhere, name)) {
      ++at;
      return;
    }
    if constexpr (std::is_same_v<Field, Index> || std::is_same_v<Field, std::vector<Index>>) {
      if (!among(any, name)) {
        refused(Index{-1});
        for (const Index huge : {Index{1} << 62, std::numeric_limits<Index>::max()}) refused(huge);
        if (!among(zero, name)) refused(Index{0});
      }
    }
    if constexpr (std::is_same_v<Field, double> || std::is_same_v<Field, Numbers>) {
      refused(std::numeric_limits<double>::quiet_NaN());
      refused(std::numeric_limits<double>::infinity());
      if (!among(any, name)) {
        refused(-1.);
        if (!among(zero, name)) refused(0.);
      }
    }
    ++at;
  });
}

const infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 3};

}  // namespace configurations_tests

TEST_CASE("configurations: epsilons that float has not are refused by their names") {
  using namespace configurations_tests;
  const auto said = [](auto config, double value) {
    config.epsilon = value;
    return said_by([&] { config.validate(); });
  };
  CHECK(said(infty::MemorizingConfig{}, 1e-300).find("epsilon is 1e-300") != std::string::npos);
  CHECK(said(infty::AssociativeConfig{}, 1e-300).find("epsilon is 1e-300") != std::string::npos);
  infty::ProductKeyConfig keys;
  keys.batch_norm_epsilon = 1e-300;
  CHECK(said_by([&] { keys.validate(); }).find("batch_norm_epsilon is 1e-300") !=
        std::string::npos);
  CHECK_THROWS_AS(infty::LayerNorm<float>(4, 1e-300), infty::ValueError);
}

TEST_CASE("configurations: every number out of its range is refused by its name") {
  using namespace configurations_tests;
  refuses("ShortTermConfig", infty::ShortTermConfig{}, {"capacity", "stride"});
  refuses("CompressiveConfig", infty::CompressiveConfig{},
          {"capacity", "compressed_capacity", "stride"});
  refuses("LaMemoConfig", infty::LaMemoConfig{}, {"capacity"});
  refuses("LongTermConfig", infty::LongTermConfig{}, {"head_dim", "power", "threshold", "mu0"},
          {"threshold", "mu0"}, {"widths"});
  refuses("MemorizingConfig", infty::MemorizingConfig{},
          {"key_heads", "cache", "window", "buckets", "bias_scale", "temperature"},
          {"gate_bias", "null_score"});
  refuses("ProductKeyConfig", infty::ProductKeyConfig{.value_dim = 8, .query_hidden = {8}},
          {"value_dim", "batch_norm_momentum", "input_dropout", "query_dropout", "value_dropout",
           "key_bound"});
  infty::EngramConfig engram{.pad = 0};
  engram.lookup = {0, 1};
  engram.multipliers = {1, 3, 5};
  refuses("EngramConfig", engram, {"lookup", "pad", "layer", "seed", "dilation", "gate_epsilon"},
          {"seed"});
  refuses("TitansConfig", infty::TitansConfig{.model_dim = 6, .heads = 2, .head_dim = 3},
          {"max_surprise", "hidden", "weights_every", "convolution"});
  refuses("InfiniConfig", infty::InfiniConfig{}, {"rotary_base"}, {"gate"});
  refuses("LinearAttentionConfig", infty::LinearAttentionConfig{},
          {"epsilon", "scale", "chunk", "feature_dim", "floor"});
  refuses("DeltaNetConfig", infty::DeltaNetConfig{},
          {"value_dim", "convolution", "scale", "chunk"});
  refuses("GatedDeltaNetConfig", infty::GatedDeltaNetConfig{},
          {"value_heads", "value_dim", "convolution", "scale", "chunk"});
  refuses("AssociativeConfig", infty::AssociativeConfig{});
  refuses("SlotConfig", infty::SlotConfig{}, {"heads"});
  refuses("GruSlotConfig", infty::GruSlotConfig{}, {"heads", "feed_forward"});
  refuses("JointSlotConfig", infty::JointSlotConfig{});
  refuses("MemSizerConfig", infty::MemSizerConfig{});
  refuses("MemSizerLayerConfig", infty::MemSizerLayerConfig{});
  refuses("MemoryTokensConfig", infty::MemoryTokensConfig{}, {"deviation"});
  refuses("RecurrentTokensConfig", infty::RecurrentTokensConfig{}, {"back_through", "deviation"},
          {"back_through"});
  refuses("MemoryEncoderConfig", infty::MemoryEncoderConfig{});
  refuses("SlidingWindowConfig", infty::SlidingWindowConfig{}, {"kept"});
  refuses("Gpt2Config", infty::Gpt2Config{},
          {"feed_forward", "dropout", "attention_dropout", "kept", "memory_blocks", "begin_token",
           "end_token"},
          {"embedding_dropout", "begin_token", "end_token"});
  for (const double share : {-.5, 1.}) {  // -1 stands for another
    const infty::Gpt2Config config{.embedding_dropout = share};
    CHECK(said_by([&] { config.validate(); }).find("embedding_dropout") != std::string::npos);
  }
}

TEST_CASE("configurations: what does not go together is refused in words") {
  using namespace configurations_tests;
  using infty::Random;
  struct Row {
    std::string what;
    std::function<void()> make;
    std::string words;
  };
  const auto engram = [](auto change) {
    return [change] {
      infty::EngramConfig config{.pad = 0, .width = 8, .table_sizes = {5, 5}};
      config.lookup = {0, 1, 2};
      change(config);
      infty::Engram<float>(config, 6);
    };
  };
  using Keys = infty::ProductKeyMemory<float>;
  using Engram = infty::EngramConfig;
  constexpr Index big = Index{1} << 40;
  const std::vector<Row> rows{
      {"more retrieved than remembered",
       [] { infty::MemorizingAttention<float>({.capacity = 8, .k = 9}, sizes); },
       "k is 9: it must be at most capacity, 8"},
      {"a share of buckets of which there is none",
       [] { infty::MemorizingAttention<float>({.buckets = 1}, sizes); }, "buckets is 1"},
      {"more slots than pairs", [] { Keys({.sub_keys = 4, .k = 5}, 6, Random(1)); },
       "k is 5, sub_keys is 4"},
      {"a query that has no halves", [] { Keys({.key_dim = 7}, 6, Random(1)); },
       "key_dim is 7: it must be even"},
      {"2^80 slots", [] { Keys({.sub_keys = big}, 6, Random(1)); }, "sub_keys is 1099511627776"},
      {"2^56 slots of some width",
       [] { Keys({.sub_keys = Index{1} << 27, .key_dim = 2}, 6, Random(1)); },
       "sub_keys is 134217728"},
      {"values of another width without a map", [] { Keys({.value_dim = 5}, 6, Random(1)); },
       "value_dim"},
      {"no tables", engram([](Engram& c) { c.heads = 0; }), "heads is 0"},
      {"tables of no rows", engram([](Engram& c) {
         c.table_sizes = {5, 0};
       }),
       "table_sizes has 0"},
      {"tables of 2^40 rows", engram([](Engram& c) {
         c.table_sizes = {5, big};
       }),
       "table_sizes has 1099511627776"},
      {"tables for another n", engram([](Engram& c) { c.table_sizes = {5}; }),
       "table_sizes has 1 numbers, max_ngram is 3"},
      {"heads that do not divide", engram([](Engram& c) { c.heads = 3; }),
       "width is 8, heads 3: heads must divide width"},
      {"branches that do not divide", engram([](Engram& c) { c.branches = 4; }),
       "branches must divide model_dim"},
      {"a pad that is no token", engram([](Engram& c) { c.pad = 3; }), "pad is 3"},
      {"even multipliers", engram([](Engram& c) {
         c.multipliers = {1, 2, 3};
       }),
       "multipliers has 2"},
      {"layers without this one", engram([](Engram& c) {
         c.layers = {0, 2};
       }),
       "layers does not have layer"},
      {"weights between chunks",
       [] { infty::Titans<float>({.chunk = 4, .weights_every = 6}, sizes); },
       "weights_every is 6, chunk is 4"},
      {"heads that do not divide keys",
       [] { infty::AssociativeMemory<float>({.heads = 3, .key_dim = 8}, 6, Random(1)); },
       "key_dim is 8, heads are 3"},
      {"heads that do not divide values",
       [] { infty::AssociativeMemory<float>({.heads = 4, .key_dim = 8}, 6, Random(1)); }, "heads"},
      {"heads of slots that do not divide",
       [] { infty::SlotWriter<float>({.slots = 2, .heads = 4}, 6, Random(1)); }, "heads"},
      {"the same of another writer",
       [] { infty::GruSlotWriter<float>({.slots = 2, .heads = 4}, 6, Random(1)); }, "heads"},
      {"the same of joint slots",
       [] { infty::JointSlots<float>({.slots = 2, .heads = 4}, 6, Random(1)); }, "heads"},
      {"2^40 slots of a width of 2^40",
       [] { infty::SlotWriter<float>({.slots = big, .heads = 1}, big, Random(1)); },
       "d is 1099511627776"},
      {"heads of values that share no keys",
       [] { infty::GatedDeltaNet<float>({.value_heads = 3}, sizes); }, "value_heads is 3"},
      {"2^40 slots for 2^40 vectors' width",
       [] {
         infty::MemSizer<float>({.slots = big}, {.model_dim = big, .heads = 1, .head_dim = 1});
       },
       "is 1099511627776"},
      {"a past that reads nothing",
       [] { infty::LaMemoConfig{.look_ahead = false, .interpolation = false}.validate(); },
       "look_ahead and interpolation are false"},
      {"widths of no functions",
       [] {
         infty::LongTermMemory<float>({.model_dim = 6, .heads = 2, .widths = {.1, 0}});
       },
       "width 1 is 0"},
      {"a long-term memory's heads that do not divide the width",
       [] { infty::LongTermConfig{.model_dim = 7, .heads = 2}.validate(); },
       "model_dim is 7, heads is 2"},
  };
  for (const Row& row : rows) {
    const std::string said = said_by(row.make);
    CAPTURE(row.what, said);
    CHECK(said.find(row.words) != std::string::npos);
  }
}
