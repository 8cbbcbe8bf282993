// SPDX-License-Identifier: MIT
#include <infty/model/presets/titans.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"

TEST_CASE("presets: Titans is a valid configuration, of which a model can be made") {
  auto e = infty::presets::titans_enwik8();
  CHECK_NOTHROW(e.model.validate());
  CHECK_NOTHROW(e.memory.attention.validate());
  CHECK_NOTHROW(e.memory.resolved_memory(e.model.attention_sizes()).validate());
  CHECK(e.segment * 16 == e.length);
  CHECK(e.steps > 0);
  using Mixer = infty::WithMemory<infty::ShortTermMemory<float>, infty::TitansMemory<float>>;
  e.model.layers = 1;
  const infty::TransformerLM<Mixer> model(e.model, e.memory, infty::Random(1));
  auto state = model.make_state(1);
  // Vectors leave the attention by 32, which are 8 chunks.
  model.observe(state, infty::Tensor<infty::Index>::full({1, 96}, infty::Index{5}), 32);
  CHECK(state.body.layers[0].mixer.past->memory.since == infty::RowCounts{32});
}
