// SPDX-License-Identifier: MIT
#include <infty/model/presets/memsizer.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

TEST_CASE("presets: a language model of MemSizers is made in a line") {
  const infty::TransformerLM<infty::MemSizer<float>> model(
      {.vocabulary = 21, .model_dim = 64, .heads = 4}, {.slots = 32});
  CHECK(model.memory_config().slots == 32);
}

TEST_CASE("presets: MemSizer's language model is one, and its decoder layer") {
  auto e = infty::presets::memsizer_wikitext103();
  CHECK_NOTHROW(e.model.validate());
  CHECK_NOTHROW(e.memory.validate());
  CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
  e.model.vocabulary = 9;  // quicker
  e.model.cutoffs = {};
  e.model.model_dim = 16;
  e.model.head_dim = 2;
  e.model.layers = 2;
  e.model.feed_forward = 8;
  const infty::TransformerLM<infty::MemSizer<float>> model(e.model, e.memory);
  auto state = model.make_state(1);
  CHECK(model.forward(state, infty::Tensor<infty::Index>::zeros({1, 3})).shape() ==
        infty::Shape{1, 3, 16});
  const auto layer = infty::presets::memsizer_translation();
  CHECK_NOTHROW(layer.validate());
  CHECK(layer.self.slots < layer.cross.slots);
  const auto translation = infty::presets::memsizer_translation_model();
  CHECK_NOTHROW(translation.validate());
  CHECK(translation.decoder.feed_forward == layer.feed_forward);
  const auto search = infty::presets::memsizer_translation_search();
  CHECK_NOTHROW(search.validate());
  CHECK(search.score(-6, 3) == -2);
}
