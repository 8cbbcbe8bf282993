// SPDX-License-Identifier: MIT
#include <infty/model/presets/memsizer.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"
#include "support/language_model.hpp"

TEST_CASE("presets: a language model of MemSizers is made in a line") {
  const infty::TransformerLM<infty::MemSizer<float>> model(
      {.vocabulary = 21, .model_dim = 64, .heads = 4}, {.slots = 32});
  CHECK(model.memory_config().slots == 32);
}

TEST_CASE("presets: MemSizer's language model is one, and its decoder layer") {
  infty::tests::check_language_model<infty::PlacedMixer<infty::MemSizer<float>>>(
      infty::presets::memsizer_wikitext103());
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
