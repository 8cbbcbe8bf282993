// SPDX-License-Identifier: MIT
#include <infty/model/presets/linear_attention.hpp>
#include <infty/model/with_mixer.hpp>
#include <infty/nn/causal_attention.hpp>

#include "support/catch.hpp"
#include "support/language_model.hpp"

TEST_CASE("presets: a trained transformer becomes a T2R in a line") {
  const infty::TransformerLM<infty::CausalAttention<float>> trained(
      {.vocabulary = 21, .model_dim = 64, .heads = 4});
  auto [model, report] = infty::with_mixer<infty::LinearAttention<float>>(
      trained, infty::presets::t2r(), infty::Random(1));

  CHECK(report.missing.size() == 2 * 3);  // W and b of the three layers
  auto state = model.make_state(1);
  CHECK(model.forward(state, infty::Tensor<infty::Index>::zeros({1, 3})).shape() ==
        infty::Shape{1, 3, 64});
}

TEST_CASE("presets: the linear transformer that draws digits is a language model of brightnesses") {
  const auto e = infty::presets::linear_transformer_mnist();
  CHECK(e.memory.features == infty::FeatureMap::elu_plus_one);
  CHECK(e.length == 28 * 28);
  CHECK(e.model.vocabulary == 256);
  infty::tests::check_language_model<infty::PlacedMixer<infty::LinearAttention<float>>>(e);
}

TEST_CASE("presets: MemSizer's rivals are language models of its sizes") {
  using infty::presets::memsizer_rival;
  for (const auto& rival :
       {infty::LinearAttentionConfig{}, infty::presets::rfa(),
        infty::presets::rfa(true, infty::FeatureMap::arc_cosine), infty::presets::t2r()}) {
    const auto e = memsizer_rival(rival);
    CHECK(e.model.layers == infty::presets::memsizer_wikitext103().model.layers);
    infty::tests::check_language_model<infty::PlacedMixer<infty::LinearAttention<float>>>(e);
  }
}
