// SPDX-License-Identifier: MIT
#include <infty/memory/associative_layer.hpp>
#include <infty/memory/gru_slot_writer.hpp>
#include <infty/memory/joint_slots.hpp>
#include <infty/memory/memformer.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/product_key_memory.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/tokens_behind.hpp>
#include <infty/memory/with_engram.hpp>
#include <infty/nn/causal_attention.hpp>

#include "endurance/family.hpp"

namespace endurance {

namespace {

using Attention = infty::ShortTermMemory<float>;
using Plain = infty::CausalAttention<float>;

infty::Layers<infty::Block<Attention>> attention() {
  return stack_of(Attention({.capacity = 64}, sizes, Random(1)));
}

/// The memory of an Associative Recurrent Memory Transformer, as one that every vector is written
/// to.
struct Written : infty::AssociativeMemory<float> {
  using infty::AssociativeMemory<float>::AssociativeMemory;
  void write(State& state, const V& x, const infty::RowCounts&) const {
    infty::AssociativeMemory<float>::write(state, x);
  }
};

Layer associative_alone(const infty::AssociativeConfig& config) {
  Direct<Written> alone{Written(config, sizes.model_dim, Random(7))};
  Random random(3);
  fill_uniform(alone.memory.value.weight.value(), -.25, .25, random);
  return Layer(alone);
}

Layer associative(const infty::AssociativeConfig& config) {
  using Inner = infty::Block<Plain>;
  infty::Layers<infty::AssociativeLayer<Inner>> stack;
  stack.layers.emplace_back(stack_of(Plain({}, sizes, Random(1))).layers[0], config,
                            sizes.model_dim, Random(7));
  // Values begin as zeros, by which nothing would ever be written.
  Random random(3);
  fill_uniform(stack.layers[0].memory.value.weight.value(), -.25, .25, random);
  return Layer(infty::TokensBehind<infty::Layers<infty::AssociativeLayer<Inner>>>(
      stack, 4, sizes.model_dim, Random(9)));
}

template <class Writer>
void add_memformer(Trials& trials, const std::string& name) {
  using Mixer = infty::Memformer<Attention, Writer>;
  trials.push_back({name, false, [] {
                      Mixer mixer({.attention = {.capacity = 16}, .slots = {.slots = 8}}, sizes,
                                  Random(1));
                      auto writer = mixer.make_writer();
                      using Stack = infty::Layers<infty::Block<Mixer>>;
                      return Layer(infty::RecurrentSlots<Stack, Writer>(stack_of(std::move(mixer)),
                                                                        std::move(writer)));
                    }});
}

}  // namespace

void add_decorators(Trials& trials) {
  const Index d = sizes.model_dim;
  using Stack = infty::Layers<infty::Block<Attention>>;
  trials.push_back({"memory tokens", false, [=] {
                      return Layer(
                          infty::MemoryTokens<Stack>(attention(), {.tokens = 4}, d, Random(3)));
                    }});
  trials.push_back({"recurrent tokens", false, [=] {
                      return Layer(
                          infty::RecurrentTokens<Stack>(attention(), {.tokens = 4}, d, Random(3)));
                    }});
  trials.push_back({"associative", true, [] { return associative({.key_dim = 16}); }, 1e18});
  trials.push_back(
      {"associative, no mass", true,
       [] { return associative({.key_dim = 16, .unit_features = true, .denominator = false}); },
       1e18});
  trials.push_back(
      {"associative, by itself", true, [] { return associative_alone({.key_dim = 16}); }, 1e6});
  trials.push_back({"associative, by itself, heads", true,
                    [] { return associative_alone({.heads = 2, .key_dim = 16}); }, 1e6});
  add_memformer<infty::SlotWriter<float>>(trials, "Memformer");
  add_memformer<infty::GruSlotWriter<float>>(trials, "Memformer, GRU");
  trials.push_back({"joint slots", true,
                    [=] {
                      return Layer(infty::JointSlots<float>(
                          {.slots = 8, .layers = 1, .heads = 2, .feed_forward = 32}, d, Random(1)));
                    },
                    1e18});
  trials.push_back({"product keys", false, [=] {
                      using Feed = infty::ProductKeyMemory<float>;
                      return Layer(infty::Block<Plain, Feed>{
                          .mixer = Plain({}, sizes, Random(1)),
                          .mixer_norm = infty::LayerNorm<float>(d),
                          .feed = Feed({.sub_keys = 16, .k = 4, .key_dim = 8}, d, Random(2)),
                          .feed_norm = infty::LayerNorm<float>(d)});
                    }});
  trials.push_back({"Memory+, shared by two layers", false, [=] {
                      using Feed = infty::ProductKeyMemory<float>;
                      const Feed first({.sub_keys = 16,
                                        .k = 4,
                                        .key_dim = 8,
                                        .query_batch_norm = false,
                                        .output = infty::ProductKeyOutput::silu_gated,
                                        .gate = true},
                                       d, Random(2));
                      infty::Layers<infty::Block<Plain, Feed>> stack;
                      for (const Feed& feed : {first, first.sibling(Random(3))})
                        stack.layers.push_back({.mixer = Plain({}, sizes, Random(1)),
                                                .mixer_norm = infty::LayerNorm<float>(d),
                                                .feed = feed,
                                                .feed_norm = infty::LayerNorm<float>(d)});
                      return Layer(stack);
                    }});
  trials.push_back(
      {"Engram", false, [=] {
         infty::EngramConfig config{.pad = 0, .heads = 2, .width = 8, .table_sizes = {50, 50}};
         for (Index i = 0; i < words; ++i) config.lookup.push_back(i);
         return Layer(infty::WithEngram<Stack>(attention(), config, d, Random(4)));
       }});
}

}  // namespace endurance
