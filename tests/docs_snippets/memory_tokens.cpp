// SPDX-License-Identifier: MIT
// The code of docs/memories.md on memory tokens.

#include <utility>

#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/memory_encoder.hpp>
#include <infty/nn/added_places.hpp>
#include <infty/nn/causal_attention.hpp>

#include "support/catch.hpp"

namespace memory_tokens_page {

const infty::AttentionSizes sizes{.model_dim = 8, .heads = 2, .head_dim = 4};
const infty::Variable<float> x(infty::Tensor<float>::full({1, 3, 8}, .5f));

TEST_CASE("docs/memories.md: an encoder with memory tokens") {
  const infty::Random random(1);

  infty::Layers<infty::MemoryEncoderLayer<float>> layers;
  for (std::uint64_t i = 0; i < 6; ++i)
    layers.layers.push_back({{.feed_forward = 1024}, sizes, random.split(i)});
  const infty::MemoryTokens encoder(layers, {.tokens = 10}, sizes.model_dim, random.split(6));

  auto state = encoder.make_state(1);
  infty::Pass<float> pass;
  CHECK(encoder.forward(state, x, pass).shape() == x.shape());
}

TEST_CASE("docs/memories.md: recurrent memory tokens around GPT-2's blocks") {
  using GptBlock = infty::Block<infty::CausalAttention<float>>;
  const infty::Random random(1);
  const infty::Index d = sizes.model_dim;
  const infty::AddedPlaces<float> places(64, d, random.split(0));
  const infty::LayerNorm<float> norm(d);
  const infty::Layers<GptBlock> blocks{
      {{.mixer = infty::CausalAttention<float>({}, sizes, random.split(1)),
        .mixer_norm = norm,
        .feed = infty::FeedForward<float>(d, 16, random.split(2)),
        .feed_norm = norm}}};

  using Stack =
      infty::Layers<infty::AddedPlaces<float>, infty::Layers<GptBlock>, infty::LayerNorm<float>>;
  infty::RecurrentTokens body(Stack(places, blocks, norm), {.tokens = 10}, d, random);

  auto state = body.make_state(1);
  infty::Pass<float> pass;
  CHECK(body.forward(state, x, pass).shape() == x.shape());
}

}  // namespace memory_tokens_page
