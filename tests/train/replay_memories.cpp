// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/associative_layer.hpp>
#include <infty/memory/delta_net.hpp>
#include <infty/memory/feature_map.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/infini_attention.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memory_in_front.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/titans.hpp>
#include <infty/memory/tokens_behind.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/nn/any_layer.hpp>

#include "train/replay.hpp"

namespace replay_tests {

using Body = infty::AnyLayer<double>;

template <class Mixer>
Body of(const typename Mixer::Config& config) {
  return Body(Mixer(config, sizes, Random(1)));
}

TEST_CASE("replayed_loss: the numbers of back-propagation through time, of every other memory") {
  using infty::FeatureMap;
  using Attention = infty::ShortTermMemory<double>;
  using Associative = infty::AssociativeLayer<Attention>;
  const Attention attention({.capacity = 3}, sizes, Random(1));
  Associative associative(attention, {.heads = 2, .key_dim = 4}, sizes.model_dim, Random(2));
  Random random(3);  // values begin as zeros, by which nothing would ever be written
  fill_uniform(associative.memory.value.weight.value(), -.25, .25, random);
  const infty::TitansConfig titans{.chunk = 2, .weights_every = 2};
  std::vector<std::pair<std::string, Body>> bodies{
      {"linear", of<infty::LinearAttention<double>>({})},
      {"RFA, gated", of<infty::LinearAttention<double>>(
                         {.features = FeatureMap::gaussian, .feature_dim = 4, .gate = true})},
      {"T2R", of<infty::LinearAttention<double>>({.features = FeatureMap::learned})},
      {"DeltaNet", of<infty::DeltaNet<double>>({})},
      {"Gated DeltaNet", of<infty::GatedDeltaNet<double>>({})},
      {"Infini-attention", of<infty::InfiniAttention<double>>({.segment = 4, .delta = true})},
      {"Infini-attention, linear",
       of<infty::InfiniAttention<double>>({.segment = 2, .delta = false})},
      {"MemSizer", of<infty::MemSizer<double>>({.slots = 3})},
      {"Titans", of<infty::Titans<double>>(titans)},
      {"Titans beside attention",
       of<infty::WithMemory<infty::NoMemory<double>, infty::TitansMemory<double>>>(
           {.memory = titans})},
      {"Titans in front", Body(infty::MemoryInFront<Attention, infty::TitansMemory<double>>(
                              attention, titans, 2, sizes.model_dim, Random(3)))},
      {"associative",
       Body(infty::TokensBehind<Associative>(associative, 2, sizes.model_dim, Random(4)))},
  };
  const Stream<double, infty::EigenBackend> stream(5);
  for (auto& [name, body] : bodies)
    for (const bool dropped : {false, true}) {
      CAPTURE(name, dropped);
      const auto expected = through_time(body, stream, dropped);
      check_equal(by_replay(body, stream, dropped), expected, 1e-12);
      // Some gradients stem from later segments, or nothing would be compared.
      const auto cut = through_time(body, stream, dropped, 1);
      double further = 0;
      for (std::size_t i = 0; i < cut.gradients.size(); ++i)
        further = std::max(further, infty::tests::error(cut.gradients[i], expected.gradients[i]));
      CHECK(further > 1e-6);
    }
}

}  // namespace replay_tests
