// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <infty/memory/product_key_memory.hpp>
#include <infty/model/any_transformer_lm.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/presets/product_keys.hpp>
#include <infty/nn/causal_attention.hpp>

#include "support/catch.hpp"

TEST_CASE("presets: product keys are valid, and a memory of their kind reads") {
  for (auto e : {infty::presets::product_keys(), infty::presets::memory_plus()}) {
    CHECK_NOTHROW(e.memory.validate());
    CHECK_NOTHROW(e.adam.validate());
    for (const infty::Index layer : e.layers) CHECK((layer >= 0 && layer < e.depth));
    e.memory.sub_keys = 40;  // the table would be of gigabytes
    e.model_dim = 8;
    const infty::ProductKeyMemory<float> memory(e.memory, e.model_dim, infty::Random(1));
    infty::Pass<float> pass;
    const infty::Variable<float> x(infty::Tensor<float>::full({1, 2, 8}, 1));
    CHECK(memory.forward(x, pass).shape() == x.shape());
  }
  CHECK(infty::presets::product_keys().memory.slots() == 512 * 512);
  CHECK(infty::presets::memory_plus().memory.key_bound == Catch::Approx(1 / std::sqrt(512.)));
}

TEST_CASE("presets: product keys stand in the layers that the paper names, and in no other") {
  using infty::Block, infty::Index, infty::Random;
  using T = float;
  using Plain = infty::CausalAttention<T>;
  using Keys = infty::ProductKeyMemory<T>;
  using Model = infty::AnyTransformerLM<T>;
  auto e = infty::presets::product_keys();
  e.memory.sub_keys = 40;
  e.memory.key_dim = 4;
  const Index d = 4;
  const auto has_memory = [&](Index layer) {
    return std::find(e.layers.begin(), e.layers.end(), layer) != e.layers.end();
  };
  const infty::TransformerConfig config{
      .vocabulary = 5, .model_dim = d, .layers = e.depth, .heads = 1, .feed_forward = 8};
  const Model::Parts parts{.mixer = infty::mixers_of<Plain>({}, config.attention_sizes()),
                           .feed = [&](Index i, Random random) -> Model::LayerType {
                             if (has_memory(i)) return Keys(e.memory, d, random);
                             return {};
                           }};
  Model model(config, parts, Random(1));
  Index tables = 0;
  infty::for_each_parameter(model, [&](const std::string& name, auto& parameter) {
    if (!name.ends_with("feed.values")) return;
    ++tables;
    CHECK(parameter.shape() == infty::Shape{e.memory.slots(), d});
    CHECK(std::any_of(e.layers.begin(), e.layers.end(), [&](Index layer) {
      return name.find("." + std::to_string(layer) + ".") != std::string::npos;
    }));
  });
  CHECK(tables == 2);

  // The same where types are known.
  const auto block = [&]<class Feed>(Feed feed) {
    return Block<Plain, Feed>{.mixer = Plain({}, config.attention_sizes(), Random(1)),
                              .mixer_norm = infty::LayerNorm<T>(d),
                              .feed = std::move(feed),
                              .feed_norm = infty::LayerNorm<T>(d)};
  };
  const auto plain = block(infty::FeedForward<T>(d, 8, Random(2)));
  using Without = Block<Plain, infty::FeedForward<T>>;
  const infty::Layers<Without, Block<Plain, Keys>, Without> stack(
      plain, block(Keys(e.memory, d, Random(3))), plain);
  auto state = stack.make_state(1);
  infty::Pass<T> pass;
  const infty::Variable<T> x(infty::Tensor<T>::full({1, 2, d}, 1));
  CHECK(stack.forward(state, x, pass).shape() == x.shape());
}
