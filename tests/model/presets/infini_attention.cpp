// SPDX-License-Identifier: MIT
#include <infty/memory/infini_attention.hpp>
#include <infty/model/presets/infini_attention.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"

TEST_CASE("presets: a language model with Infini-attention is made in a line") {
  const infty::TransformerLM<infty::InfiniAttention<float>> model(
      {.vocabulary = 21, .model_dim = 64, .layers = 2, .heads = 4},
      {.segment = 128, .delta = true});
  CHECK(model.memory_config().segment == 128);
}

TEST_CASE("presets: Infini-attention's language model is one") {
  auto e = infty::presets::infini_attention();
  CHECK_NOTHROW(e.model.validate());
  CHECK_NOTHROW(e.memory.validate());
  CHECK(e.memory.delta);
  CHECK_FALSE(infty::presets::infini_attention(false).memory.delta);
  CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
  CHECK(e.length % e.segment == 0);
  e.model.vocabulary = 9;  // quicker
  e.model.model_dim = 8;
  e.model.head_dim = 2;
  e.model.layers = 1;
  e.model.feed_forward = 8;
  e.memory.segment = 4;
  const infty::TransformerLM<infty::InfiniAttention<float>> model(e.model, e.memory);
  auto state = model.make_state(1);
  CHECK(model.forward(state, infty::Tensor<infty::Index>::zeros({1, 9})).shape() ==
        infty::Shape{1, 9, 8});
  CHECK(state.body.layers[0].mixer.written == infty::RowCounts{2});
}
