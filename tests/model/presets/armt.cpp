// SPDX-License-Identifier: MIT
#include <cstdint>

#include <infty/memory/associative_layer.hpp>
#include <infty/memory/tokens_behind.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/presets/armt.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/positioned_embedding.hpp>

#include "support/catch.hpp"

TEST_CASE("presets: an Associative Recurrent Memory Transformer is put together") {
  const infty::Index d = 8, longest = 64;
  infty::PositionedEmbedding<float> embedding(21, longest, d, infty::Random(1));
  const infty::AttentionSizes sizes{.model_dim = d, .heads = 2, .head_dim = 4};
  const infty::Random random(2);

  using Inner = infty::Block<infty::CausalAttention<float>>;
  using Stack = infty::Layers<infty::AssociativeLayer<Inner>>;

  Stack stack;
  for (std::uint64_t i = 0; i < 3; ++i) {
    Inner block{.mixer = infty::CausalAttention<float>({}, sizes, random.split(4 * i)),
                .mixer_norm = infty::LayerNorm<float>(d),
                .feed = infty::FeedForward<float>(d, 32, random.split(4 * i + 1)),
                .feed_norm = infty::LayerNorm<float>(d)};
    stack.layers.emplace_back(block, infty::AssociativeConfig{.key_dim = 4}, d,
                              random.split(4 * i + 2));
  }
  infty::TokensBehind<Stack> body(stack, 5, d, random.split(3));
  body.places = embedding.places.weight;  // the tokens have the last five

  auto state = body.make_state(2);
  infty::Pass<float> pass;
  const auto ids = infty::Tensor<infty::Index>::zeros({2, 30});
  const auto hidden = body.forward(state, embedding.forward(ids, pass), pass);
  CHECK(hidden.shape() == infty::Shape{2, 30, d});
  CHECK(state.inner.layers[2].memory.written == infty::RowCounts{1, 1});
}

TEST_CASE("presets: ARMT's model of BABILong is one") {
  const auto e = infty::presets::armt_babilong();
  CHECK_NOTHROW(e.model.validate());
  CHECK_NOTHROW(e.memory.validate());
  CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
  CHECK(e.length == e.segment * e.segments);
  CHECK(e.memory.features() == 384);
  CHECK(e.tokens == 10);
}
